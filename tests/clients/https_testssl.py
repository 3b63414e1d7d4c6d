"""Judges what testssl.sh found at an agent that speaks TLS.

usage: https_testssl.py FILE

FILE is what testssl.sh writes with --jsonfile.
"""

import json
import sys

# These must be there, and good.
GOOD = {
    "SSLv2", "SSLv3", "TLS1_2", "TLS1_3", "cipherlist_NULL", "cipherlist_aNULL", "cipherlist_EXPORT", "cipherlist_LOW",
    "cipherlist_STRONG", "PFS", "heartbleed", "CCS", "ticketbleed", "ROBOT", "secure_renego", "secure_client_renego",
    "CRIME_TLS", "POODLE_SSL", "fallback_SCSV", "SWEET32", "FREAK", "DROWN", "LOGJAM", "BEAST", "LUCKY13", "RC4",
}
# These say what is meant to be: the client's order of suites counts, because all suites are good; the certificate is the
# lab's own; and OpenSSL has no engine.
EXPECTED = {"cipher_order", "engine_problem"}

found = {one["id"]: (one["severity"], one["finding"]) for one in json.load(open(sys.argv[1]))}
wrong = {name: found.get(name) for name in GOOD if found.get(name, ("missing",))[0] != "OK"}
wrong |= {
    name: said for name, said in found.items() if said[0] not in ("OK", "INFO") and not name.startswith("cert")
    and name not in EXPECTED
}
assert not wrong, wrong
print(f"{len(found)} findings, and all of {len(GOOD)} that matter are good")

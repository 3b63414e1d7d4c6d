// The script `run` adds this file to BoringSSL's test runner. The runner has most of its tests of records for clients only.
// These tests mean the same for a server, so here they are made tests of servers as well.

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// These patterns are for the names of the tests that mean the same for a server.
var asServers = []string{
	"AlertAfterChangeCipherSpec",
	"AppData*",
	"CheckRecordVersion-TLS12",
	"CheckRecordVersion-TLS13",
	"KeyUpdate-*",
	"LargeCiphertext",
	"LargePlaintext*",
	"SendBogusAlertType",
	"SendEmptyRecords*",
	"SendInvalidRecordType",
	"SendPostHandshakeChangeCipherSpec-TLS13",
	"SendUserCanceledAlerts*",
	"SendWarningAlerts*",
	"Shutdown-Runner-*",
	"Shutdown-Shim-ApplicationData-*",
	"Shutdown-Shim-KeyUpdate-*",
	"Shutdown-Shim-TLS-*",
	"TLS-TLS12-ECDHE_*_CHACHA20_*Record",
	"TLS-TLS12-ECDHE_*_GCM_*Record",
	"TLS-TLS13-*Record",
	"TLS13-EmptyRecords",
	"TLS13-OnlyPadding",
	"TLS13-RecordPadding",
	"TLS13-WrongOuterRecord",
	"TLSFatalBadPackets",
	"TooManyKeyUpdates",
	"Unclean-Shutdown*",
}

// addServerTests adds these tests, with "-AsServer" behind their names. It prints how many tests there are in all.
func addServerTests() {
	isOfClients := func(test testCase) bool {
		return test.protocol == tls && test.testType == clientTest
	}
	for _, pattern := range asServers {
		for _, test := range matching(pattern, isOfClients) {
			test.testType = serverTest
			test.name += "-AsServer"
			if strings.Contains(test.name, "ECDSA") {
				test.certFile = ecdsaP256CertificateFile
				test.keyFile = ecdsaP256KeyFile
			}
			if strings.HasPrefix(test.name, "KeyUpdate-RequestACK") || strings.HasPrefix(test.name, "Unclean-") {
				// These tests do not expect tickets, which servers send when the handshake is over.
				test.flags = append([]string{"-no-ticket"}, test.flags...)
			}
			testCases = append(testCases, test)
			if strings.HasPrefix(test.name, "KeyUpdate-") {
				// Each byte of a handshake message is in a record of its own.
				test.name += "-Split"
				test.config.Bugs.MaxHandshakeRecordLength = 1
				testCases = append(testCases, test)
			}
		}
	}
	for pattern := range shimConfig.DisabledTests {
		matching(pattern, func(testCase) bool { return true })
	}
	fmt.Printf("TESTS %d\n", len(testCases))
}

// matching returns the tests whose name matches a pattern, and ends the program if there is none.
func matching(pattern string, isMeant func(testCase) bool) (tests []testCase) {
	for _, test := range testCases {
		if is, err := filepath.Match(pattern, test.name); err == nil && is && isMeant(test) {
			tests = append(tests, test)
		}
	}
	if len(tests) == 0 {
		fmt.Fprintf(os.Stderr, "The runner has no test %q.\n", pattern)
		os.Exit(1)
	}
	return tests
}

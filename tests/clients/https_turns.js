// Sends requests to three data servers in turn with Node's https module, over one connection with one TLS session.
//
// usage: node https_turns.js ADDRESS REQUESTS

"use strict";

const assert = require("node:assert");
const https = require("node:https");

const [address, requests] = process.argv.slice(2);
const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
const sockets = new Set();

/** Gets a page, and returns the status and the body. */
function get(path) {
    const options = { agent, host: address, path, servername: "www.example", headers: { host: "www.example" } };
    return new Promise((resolve, reject) => {
        const request = https.get({ ...options, rejectUnauthorized: false }, (response) => {
            let body = "";
            sockets.add(response.socket);
            response.setEncoding("utf8");
            response.on("data", (piece) => (body += piece));
            response.on("end", () => resolve([response.statusCode, body]));
            response.on("error", reject);
        });
        request.on("error", reject);
    });
}

async function main() {
    // Node ends well if nothing is left to wait for, even if an answer never came to its end.
    process.exitCode = 1;
    for (let turn = 0; turn < Number(requests); turn++) {
        const server = `ds${(turn % 3) + 1}`;
        const path = `/${server}/node-${turn}`;
        assert.deepStrictEqual(await get(path), [200, `${server} ${path}\n`]);
    }
    assert.strictEqual(sockets.size, 1, "the connection was not kept");
    agent.destroy();
    process.exitCode = 0;
}

main();

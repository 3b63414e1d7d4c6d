// Asks for the names of a TLS service with Node's https and http2 modules, over connections that are kept.
//
// usage: node tls_get.js ADDRESS "NAME=SERVER[,SERVER] ..."
//
// Each request must be answered by one of the servers of its name, and all of a connection by the same one.

"use strict";

const assert = require("node:assert");
const http2 = require("node:http2");
const https = require("node:https");
const tls = require("node:tls");

const [address, names] = process.argv.slice(2);
const PAGES = [["/whoami", 4], ["/64k", 65536], ["/whoami", 4], ["/1m", 1 << 20], ["/whoami", 4]];

/** Reads an answer to its end, and returns who gave it and how many bytes it has. */
function read(stream, headers) {
    return new Promise((resolve, reject) => {
        let length = 0;
        stream.on("data", (piece) => (length += piece.length));
        stream.on("end", () => resolve({ by: headers["x-served-by"], length }));
        stream.on("error", reject);
    });
}

/** An HTTP/1.1 connection: a function that gets a page, and one that ends the connection. */
function byHttps(name) {
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set();
    const get = (path) =>
        new Promise((resolve, reject) => {
            const options = { agent, host: address, path, servername: name, headers: { host: name } };
            const request = https.get({ ...options, rejectUnauthorized: false }, (response) => {
                sockets.add(response.socket);
                assert.strictEqual(sockets.size, 1, `${name}: the connection was not kept`);
                resolve(read(response, response.headers));
            });
            request.on("error", reject);
        });
    return { get, end: () => agent.destroy() };
}

/** The same over HTTP/2. */
function byHttp2(name) {
    const options = { host: address, port: 443, servername: name, ALPNProtocols: ["h2"], rejectUnauthorized: false };
    const session = http2.connect(`https://${name}`, { createConnection: () => tls.connect(options) });
    const get = (path) =>
        new Promise((resolve, reject) => {
            const stream = session.request({ ":path": path });
            stream.on("response", (headers) => resolve(read(stream, headers)));
            stream.on("error", reject);
            session.on("error", reject);
        });
    return { get, end: () => session.close() };
}

async function main() {
    // Node ends well if nothing is left to wait for, even if an answer never came to its end.
    process.exitCode = 1;
    for (const connect of [byHttps, byHttp2]) {
        for (const [name, servers] of names.split(" ").map((pair) => pair.split("="))) {
            const connection = connect(name);
            const by = new Set();
            for (const [path, length] of PAGES) {
                const answer = await connection.get(path);
                assert.strictEqual(answer.length, length, `${name}${path}`);
                by.add(answer.by);
            }
            connection.end();
            assert.ok(by.size === 1 && servers.split(",").includes([...by][0]), `${name}: ${[...by]}`);
        }
    }
    process.exitCode = 0;
}

main();

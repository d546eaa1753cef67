/**
 * Requests that no way out may pass on, and what they are answered with. HOST stands for the host as a request names it, NAME for its name alone; at the same
 * port second.test is listed, and evil.test is not.
 */
const REFUSED: readonly [title: string, bytes: string, answer: RegExp][] = [
  [
    "for another host",
    "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    /403 [\s\S]*evil\.test\S* is not on this sandbox's list; ask your user for --allow evil\.test/,
  ],
  ["for another listed host", "GET / HTTP/1.1\r\nHost: second.test\r\n\r\n", /421 [\s\S]*this connection is one to/],
  ["with another port", "GET / HTTP/1.1\r\nHost: NAME:8080\r\n\r\n", /400/],
  ["with a dot", "GET / HTTP/1.1\r\nHost: NAME.\r\n\r\n", /400/],
  ["with somebody's name before", "GET / HTTP/1.1\r\nHost: NAME@evil.test\r\n\r\n", /400/],
  ["with no host", "GET / HTTP/1.1\r\n\r\n", /400/],
  ["with an empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", /400/],
  ["with two hosts", "GET / HTTP/1.1\r\nHost: HOST\r\nHost: evil.test\r\n\r\n", /400/],
  ["with the host twice", "GET / HTTP/1.1\r\nHost: HOST\r\nhost: HOST\r\n\r\n", /400/],
  ["with a list of hosts", "GET / HTTP/1.1\r\nHost: HOST, evil.test\r\n\r\n", /400/],
  ["with a space before the colon", "GET / HTTP/1.1\r\nHost : HOST\r\n\r\n", /400/],
  ["with a folded host", "GET / HTTP/1.1\r\nHost: HOST\r\n evil.test\r\n\r\n", /40[03]/],
  ["with a whole address as its target", "GET http://evil.test/ HTTP/1.1\r\nHost: HOST\r\n\r\n", /400/],
  ["with its own address as its target", "GET http://NAME/ HTTP/1.1\r\nHost: HOST\r\n\r\n", /400/],
  ["with a star", "OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n", /400/],
  ["to a proxy", "CONNECT evil.test:443 HTTP/1.1\r\nHost: HOST\r\n\r\n", /403 [\s\S]*no proxy/],
  ["to itself by a proxy", "CONNECT NAME:80 HTTP/1.1\r\nHost: HOST\r\n\r\n", /403/],
  ["that traces", "TRACE / HTTP/1.1\r\nHost: HOST\r\n\r\n", /403/],
  ["with two lengths", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", /400/],
  ["with a list of lengths", "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1, 1\r\n\r\nx", /400/],
  [
    "with a length and pieces",
    "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    /400/,
  ],
  [
    "with pieces and a length",
    "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    /400/,
  ],
  [
    "with pieces of something",
    "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    /400/,
  ],
  [
    "with pieces twice",
    "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    /400/,
  ],
  ["with no real pieces", "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", /400/],
  ["with a hidden coding", "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", /400/],
  ["with bare line feeds", "GET / HTTP/1.1\nHost: HOST\n\n", /400/],
  ["with a bare carriage return", "GET / HTTP/1.1\r\nHost: HOST\rX: y\r\n\r\n", /400/],
  ["with a NUL", "GET / HTTP/1.1\r\nHost: HOST\r\nX: a\0b\r\n\r\n", /400/],
  ["in HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", /400/],
  ["in HTTP/0.9", "GET /\r\n\r\n", /400/],
  ["that is TLS", "\x16\x03\x01\x00\x05hello", /400/],
  ["with an endless head", `GET / HTTP/1.1\r\nHost: HOST\r\nX: ${"x".repeat(20_000)}`, /431/],
  [
    "to be upgraded with another host",
    "GET / HTTP/1.1\r\nHost: evil.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    /403/,
  ],
  [
    "to be upgraded by POST",
    "POST / HTTP/1.1\r\nHost: evil.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    /403/,
  ],
  ["with a folded header", "GET / HTTP/1.1\r\nHost: HOST\r\nx-a: b\r\n c: d\r\n\r\n", /400/],
];

/** For a host. */
export function refusedRequests(name: string, host: string): typeof REFUSED {
  return REFUSED.map(([title, bytes, answer]) => [
    title,
    bytes.replaceAll("NAME", name).replaceAll("HOST", host),
    new RegExp(`^HTTP/1\\.1 ${answer.source}`),
  ]);
}

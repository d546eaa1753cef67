import { describe, expect, test } from "vitest";
import { findKeys } from "../src/keys-in-text.ts";

// No key stands in this file as a whole: whoever searches it for keys is to find none.
const RANDOM = "Zk3vQ9xLm2Tf7Rb1Wc8Yd5Hg0Jn4Ps6AuEiOqXzKtVyCwBrMpNlFjDhGs2v9Q4x7L1m";
const random = (length: number) => RANDOM.repeat(Math.ceil(length / RANDOM.length)).slice(0, length);
const upper = (length: number) =>
  random(length * 2)
    .toUpperCase()
    .slice(0, length);
const hex = (length: number) => "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".slice(0, length);
const title = (name: string) => `-----BEGIN ${name}-----`;

describe("findKeys knows", () => {
  test.each([
    ["AWS access key id", "AKIA…", `AKIA${upper(16)}`],
    ["AWS access key id", "ASIA…", `ASIA${upper(16)}`],
    ["AWS secret key", "secret_access_key=…", `aws_secret_access_key = ${random(40)}`],
    ["GitHub token", "ghp_…", `ghp_${random(36)}`],
    ["GitHub token", "gho_…", `gho_${random(36)}`],
    ["GitHub token", "ghs_…", `ghs_${random(36)}`],
    ["GitHub token", "github_pat_…", `github_pat_${random(22)}_${random(59)}`],
    ["GitLab token", "glpat-…", `glpat-${random(20)}`],
    ["Slack token", "xoxb-…", `xoxb-${hex(64).replace(/\D/g, "").slice(0, 12)}-${random(24)}`],
    ["Slack token", "xoxp-…", `xoxp-${random(40)}`],
    ["Stripe key", "sk_live_…", `sk_live_${random(24)}`],
    ["Stripe key", "rk_live_…", `rk_live_${random(24)}`],
    ["Google API key", "AIza…", `AIza${random(35)}`],
    ["npm token", "npm_…", `npm_${random(36)}`],
    ["Anthropic key", "sk-ant-…", `sk-ant-api03-${random(80)}-AA`],
    ["OpenAI key", "sk-…", `sk-${random(48)}`],
    ["OpenAI key", "sk-proj-…", `sk-proj-${random(48)}`],
    ["JSON web token", "eyJ…", `eyJ${random(20)}.eyJ${random(40)}.${random(43)}`],
    ["private key", `${title("PRIVATE KEY")}…`, `${title("PRIVATE KEY")}\n${random(64)}`],
    ["private key", `${title("RSA PRIVATE KEY")}…`, `${title("RSA PRIVATE KEY")}\\n${random(64)}\\n`],
    [
      "private key",
      `${title("EC PRIVATE KEY")}…`,
      `${title("EC PRIVATE KEY")}\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,${hex(32)}\r\n\r\n${random(64)}`,
    ],
    ["private key", `${title("PGP PRIVATE KEY BLOCK")}…`, `${title("PGP PRIVATE KEY BLOCK")}\n\n${random(64)}`],
    ["random-looking value", "PASSWORD=…", `export DB_PASSWORD=${random(16)}`],
    ["random-looking value", "api_key=…", `"stripe_api_key" : "${random(24)}"`],
    ["random-looking value", "Token=…", `const authToken = '${hex(40)}';`],
    ["random-looking value", "secret=…", `client_secret: ${random(30)}==  # of production`],
    ["random-looking value", "SECRET_KEY=…", `settings["SECRET_KEY"] = "${hex(64)}"`],
  ])("%s by %s", (kind, masked, written) => {
    const expected = { kind, line: 3, masked, count: 1 };
    expect(findKeys(`first\n\n${written}\nlast\n`)).toEqual([expected]);
    expect(findKeys(`\n\n${written}`)).toEqual([expected]);
    expect(JSON.stringify(findKeys(written))).not.toContain(random(4));
  });

  test("a key once, by its own kind, also where it is given to a name; others of its kind are counted", () => {
    const text = `token = "ghp_${random(36)}"\nx\nAKIA${upper(16)}\ny\nz = 'ghs_${random(36)}'\n`;
    expect(findKeys(text)).toEqual([
      { kind: "GitHub token", line: 1, masked: "ghp_…", count: 2 },
      { kind: "AWS access key id", line: 3, masked: "AKIA…", count: 1 },
    ]);
  });
});

describe("findKeys takes for no key", () => {
  test.each([
    ["the id that AWS explains ids with", "AKIAIOSFODNN7EXAMPLE"],
    ["the secret that AWS explains secrets with", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"],
    ["the token that everybody explains tokens with", `eyJ${random(20)}.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${random(43)}`],
    ["a request to change it", "password = changeme-changeme-1"],
    ["a place for one's own", 'token: "your-token-here-0123"'],
    ["one letter repeated", `ghp_${"x".repeat(36)} sk-${"a".repeat(48)} npm_${"0".repeat(36)}`],
    ["a variable", `API_KEY=\${API_KEY_OF_2024_PRODUCTION}\nsecret: $SECRET_9f86d081884c7d65\ntoken = {{ token_1 }}`],
    ["the environment", "const token = process.env.GITHUB_TOKEN_V2\napi_key = os.environ.API_KEY_2024"],
    ["a path", "password: /run/secrets/database-password-2"],
    ["an address", 'token: "https://login.example.org/oauth2/v2.0/token"'],
    ["an identifier", "token: AbstractTokenProviderFactory2,\npassword = hashedPasswordOfUser1"],
    ["a type", "password: string | undefined"],
    ["an expression", `token = nextToken(${random(20)})`],
    ["a comparison", `if (token == ${random(20)})`],
    ["a UUID", "client_secret: 123e4567-e89b-42d3-a456-426614174000"],
    ["a commit", `commit ${hex(40)}\nuses: actions/checkout@${hex(40)}\n"rev": "${hex(40)}"`],
    ["a hash of a lock file", `"integrity": "sha512-${random(86)}=="\n  "js-tokens": "sha512-${random(86)}=="`],
    ["a password's hash by its name", `password_hash = "${random(40)}"`],
    ["a token that turns a page", `"nextToken": "${random(40)}", csrf_token = "${random(40)}"`],
    ["the middle of something longer", `${random(9)}AKIA${upper(16)}${random(9)} disk-${random(48)}`],
    ["a key that is too long or too short", `AKIA${upper(17)} AKIA${upper(15)} AIza${random(36)} ghp_${random(35)}`],
    ["the line alone that begins a private key", `text.startsWith("${title("PRIVATE KEY")}")`],
    ["a certificate or public key", `${title("CERTIFICATE")}\n${random(64)}\n${title("PUBLIC KEY")}\n${random(64)}`],
    ["minified code", `function(e,t){e.token=t.password,e.secret=n(${random(20)}),r={token:e,password:t.a1B2c3D4}}`],
  ])("%s", (_what, text) => {
    expect(findKeys(text)).toEqual([]);
  });
});

// Twice as long would take four times as long if any of these made it look again and again: four million characters would
// take hours, and the test would not end.
test.each([
  "a",
  "\n",
  "eyJ",
  "-eyJaaaaaaaa",
  ".eyJaaaaaaaa",
  " eyJabcdefgh.eyJabcdefgh",
  " glpat-aaaaaaaaaaaaaaaaaaaaaaaaa.a",
  " ghp_",
  "token=",
  "token='",
  "secret-key   ",
  "password=aaaaaaaaaaaaaaaaaaaa",
  "-----BEGIN PRIVATE KEY-----",
  "-----BEGIN ",
])("four million characters of %j are searched in one go", (piece) => {
  expect(findKeys(piece.repeat(4_000_000 / piece.length))).toEqual([]);
  expect(findKeys(`${piece.repeat(4_000_000 / piece.length)}\n\tAKIA${upper(16)}\n`)).toMatchObject([
    { kind: "AWS access key id", count: 1 },
  ]);
});

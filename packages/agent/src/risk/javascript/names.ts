import { each, type Rule, rule, ruleTable } from "../findings.ts";
import type { PathUse } from "../places.ts";
import type { Dialect } from "../program/expression.ts";

/** Qualified name → what to say of it: "fs:" is the module fs, others are globals. The longest beginning counts. */
export const NAME_RULES: Readonly<Record<string, Rule>> = {
  ...ruleTable(`
  MEDIUM subprocess: runs other programs
    child_process: execa: shelljs: zx: cross-spawn: node-pty: Bun.spawn Bun.$ Deno.Command Deno.run
  MEDIUM concurrency: starts threads or processes
    cluster: worker_threads:
  MEDIUM network: uses the network
    net: tls: http: https: http2: dgram: dns: quic: undici: axios: node-fetch: got: ws: superagent: request: needle:
    ssh2: ftp: nodemailer: socket.io: express: fastify: koa: puppeteer: playwright: pg: mysql: mysql2: mongodb: redis:
    ioredis: openai: @aws-sdk/client-s3: aws-sdk: playwright-core: fetch XMLHttpRequest WebSocket EventSource
    WebTransport navigator.sendBeacon Bun.serve Deno.serve Deno.connect Deno.listen Bun.connect
  HIGH dynamic-code: makes code from text
    eval Function GeneratorFunction AsyncFunction ShadowRealm vm: vm2: isolated-vm: repl: module:._compile WebAssembly
  MEDIUM environment: reads environment variables
    process.env dotenv: dotenv/config: Deno.env Bun.env
  HIGH process-control: sends signals to processes
    process.kill process.abort
  HIGH privilege: changes who it runs as, or who may use a file
    process.setuid process.setgid process.seteuid process.setegid process.setgroups process.initgroups
  CRITICAL escape: reaches the internals of the interpreter
    process.binding process._linkedBinding process.mainModule process._debugProcess
  HIGH native-code: loads native code
    process.dlopen
  HIGH native-code: calls native code
    ffi-napi: ffi: koffi: bindings: node-gyp:
  MEDIUM dynamic-import: loads modules while running
    process.getBuiltinModule module: require.cache require.extensions require.main require.resolve module.require
    module.constructor module.parent module.children module._compile module._load
  MEDIUM interpreter: looks into the interpreter
    inspector: v8: async_hooks: trace_events: diagnostics_channel: process.report
  HIGH recursive-deletion: deletes directories with everything in them
    rimraf: del: trash:
  MEDIUM prototypes: reaches the prototypes that all objects share
    Reflect Proxy Object.getPrototypeOf Object.setPrototypeOf Object.getOwnPropertyDescriptor
    Object.getOwnPropertyDescriptors Object.getOwnPropertyNames Object.getOwnPropertySymbols Object.defineProperty
    Object.defineProperties Object.prototype Array.prototype Function.prototype String.prototype Number.prototype
    Promise.prototype Error.prepareStackTrace Error.captureStackTrace
`),
  ...inFs("unlink rm rmdir truncate", rule("MEDIUM", "deletion", "deletes files")),
  ...inFs("chown lchown fchown", rule("HIGH", "privilege", "changes who it runs as, or who may use a file")),
};

/** Members that lead out of everything, on whatever object. */
export const ESCAPES = ruleTable(`
  CRITICAL escape: reaches the internals of the interpreter
    mainModule _linkedBinding
  HIGH prototypes: reaches the prototypes that all objects share
    __defineGetter__ __defineSetter__ __lookupGetter__ __proto__
  MEDIUM prototypes: reaches the prototypes that all objects share
    getPrototypeOf setPrototypeOf prepareStackTrace caller callee prototype
  MEDIUM constructor: takes the constructor of a value
    constructor
`);

/** Calls whose argument is JavaScript → which one: "last" as in new Function("a", "return a"). */
export const CODE_CALLS: Readonly<Record<string, "first" | "last">> = {
  ...each("Function GeneratorFunction AsyncFunction", "last"),
  ...each("eval vm:.runInNewContext vm:.runInThisContext vm:.runInContext vm:.Script vm:.compileFunction", "first"),
  "vm:.SourceTextModule": "first",
};

/** Calls that run a program. */
export const SHELL_CALLS: Readonly<Record<string, "line" | "list">> = {
  ...each(
    "child_process:.exec child_process:.execSync execa:.execaCommand shelljs:.exec Bun.spawn Bun.spawnSync",
    "line",
  ),
  ...each("child_process:.spawn child_process:.spawnSync child_process:.execFile child_process:.execFileSync", "list"),
  ...each("execa:.execa execa:.default cross-spawn:.default", "list"),
};

/** Calls that take paths → what each argument is used for. Also in their "Sync" forms and those of promises. */
export const PATH_CALLS: Readonly<Record<string, readonly (PathUse | undefined)[]>> = {
  ...inFs("readFile readdir open opendir stat lstat access readlink createReadStream exists realpath watch", ["read"]),
  ...inFs("writeFile appendFile createWriteStream mkdir mkdtemp chmod utimes truncate", ["write"]),
  ...inFs("unlink rm rmdir", ["delete"]),
  ...inFs("rename copyFile cp link", [undefined, "write"]),
  // What a link leads to is reached through it.
  ...inFs("symlink", ["write"]),
};

const RECURSIVE_DELETION = rule("HIGH", "recursive-deletion", "deletes directories with everything in them");

/** Calls whose arguments, as they are written, make the difference. */
export const TELLING: Dialect["telling"] = [
  [/^set(?:Timeout|Interval|Immediate)$/, /^\(\s*["'`]/, rule("HIGH", "dynamic-code", "gives a timer text to run")],
  [/^worker_threads:\.Worker$/, /\beval\s*:/, rule("HIGH", "dynamic-code", "runs text in a thread")],
  [/^(?:net|tls):\.\w+$/, /\.sock["'`]/, rule("HIGH", "secret-place", "connects to a socket of the machine")],
  [/^fs(?:\/promises)?:(?:\.promises)?\.rm(?:dir)?(?:Sync)?$/, /\brecursive\s*:\s*true/, RECURSIVE_DELETION],
  [/^fs-extra:\.(?:remove|emptyDir)/, /^/, RECURSIVE_DELETION],
];

/** What makes readable text of unreadable text. */
export const DECODERS: ReadonlySet<string> = new Set(
  `atob unescape decodeURIComponent decodeURI String.fromCharCode String.fromCodePoint Buffer.from Uint8Array.fromBase64
   Uint8Array.fromHex TextDecoder zlib:.inflateSync zlib:.gunzipSync zlib:.unzipSync zlib:.inflateRawSync
   zlib:.brotliDecompressSync crypto:.createDecipheriv buffer:.Buffer.from`.split(/\s+/),
);

function inFs<T>(names: string, what: T): Record<string, T> {
  const functions = names.split(" ").flatMap((name) => [name, `${name}Sync`]);
  const modules = ["fs:", "fs/promises:", "fs:.promises", "fs-extra:"];
  return Object.fromEntries(modules.flatMap((module) => functions.map((name) => [`${module}.${name}`, what])));
}

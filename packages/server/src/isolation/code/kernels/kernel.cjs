// Keeps JavaScript's names from one piece of code to the next. What it is asked and what it answers is described in kernel.ts.
// Asked on descriptor 4, it answers on descriptor 3; Node closes both in what the code starts. V8 itself runs the code as its console
// does: with await, with let and const that may be declared again in the same way, and with the value of the last expression.
// `load`, an import() that starts from the working directory, comes from whoever loads this.
"use strict";
const fs = require("node:fs");
const inspector = require("node:inspector");
const { createRequire } = require("node:module");
const net = require("node:net");
const { inspect } = require("node:util");
const vm = require("node:vm");
const nodeModule = require("node:module");

const ANSWERS = 3;
const PART = 16000; // characters in a line of an answer
const LARGEST = 2 * 1024 * 1024; // of one representation, in characters

let serial = "";
/** Ends the wait for what runs. */
let interrupt;

function answer(kind, members = {}) {
  const text = JSON.stringify({ kind, ...members }).replace(/[\u007f-\uffff]/g, escaped);
  let lines = "";
  for (let start = 0; start < text.length; start += PART) {
    lines += `${serial} ${start + PART < text.length ? "-" : "."} ${text.slice(start, start + PART)}\n`;
  }
  const data = Buffer.from(lines, "latin1");
  for (let written = 0; written < data.length; ) {
    try {
      written += fs.writeSync(ANSWERS, data, written);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

// --- What a value looks like ---

function bundle(value) {
  const data = { "text/plain": inspect(value) };
  if (value !== null && typeof value === "object") {
    const named = safely(() => value[Symbol.for("Jupyter.display")]?.()); // as Deno's notebooks have it
    if (named !== null && typeof named === "object") Object.assign(data, named);
    if (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) {
      const json = safely(() => JSON.stringify(value));
      if (json !== undefined) data["application/json"] ??= json;
    }
  }
  return texts(data);
}

function texts(data) {
  const kept = {};
  const dropped = [];
  for (const [mime, made] of Object.entries(data)) {
    const text =
      typeof made === "string"
        ? made
        : made instanceof Uint8Array
          ? Buffer.from(made).toString("base64")
          : safely(() => JSON.stringify(made));
    if (typeof text !== "string") continue;
    if (text.length <= LARGEST) kept[mime] = text;
    else if (mime === "text/plain") kept[mime] = text.slice(0, LARGEST);
    else dropped.push(mime);
  }
  return { data: kept, dropped };
}

function safely(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Shows values as results; a plain object with "text/html" or another MIME type among its keys is shown as that. */
function display(...values) {
  for (const value of values) {
    const isBundle =
      value !== null && typeof value === "object" && Object.keys(value).some((key) => /^\w+\/[\w.+-]+$/.test(key));
    answer("result", { main: false, ...(isBundle ? texts(value) : bundle(value)) });
  }
}

// --- Running ---

const session = new inspector.Session();
session.connect();
const hidden = Symbol("value");
const post = (method, parameters) =>
  new Promise((resolve, reject) => {
    session.post(method, parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });

/** Ends also synchronous code at a SIGINT: what is below a script that may be broken ends with it. */
const breakable = new vm.Script("globalThis[Symbol.for('agentfense.run')]()");

async function evaluated(expression) {
  let evaluating;
  Object.defineProperty(globalThis, Symbol.for("agentfense.run"), {
    configurable: true,
    value: () => {
      evaluating = post("Runtime.evaluate", { expression, replMode: true, awaitPromise: true, generatePreview: false });
      evaluating.catch(() => {});
    },
  });
  try {
    breakable.runInThisContext({ breakOnSigint: true });
  } finally {
    delete globalThis[Symbol.for("agentfense.run")];
  }
  const left = new Promise((_resolve, reject) => {
    interrupt = () => reject(new Interrupted("the code was interrupted"));
  });
  return await Promise.race([evaluating, left]);
}

class Interrupted extends Error {
  name = "KeyboardInterrupt";
}

/** The value behind what the inspector says of it. */
async function valueBehind(remote) {
  if (remote.objectId === undefined) {
    if (remote.unserializableValue !== undefined) return vm.runInThisContext(`(${remote.unserializableValue})`);
    return remote.value;
  }
  await post("Runtime.callFunctionOn", {
    functionDeclaration: "function (value) { this[Symbol.for('agentfense.value')] = value; }",
    objectId: await holderId(),
    arguments: [{ objectId: remote.objectId }],
  });
  const value = holder[Symbol.for("agentfense.value")];
  delete holder[Symbol.for("agentfense.value")];
  return value;
}

const holder = {};
let holderIdentity;
async function holderId() {
  if (holderIdentity === undefined) {
    globalThis[hidden] = holder;
    Object.defineProperty(globalThis, "__agentfense", { configurable: true, value: holder });
    const { result } = await post("Runtime.evaluate", { expression: "globalThis.__agentfense" });
    delete globalThis.__agentfense;
    delete globalThis[hidden];
    holderIdentity = result.objectId;
  }
  return holderIdentity;
}

/** The error, if there is one. */
async function run({ code, typescript }, count) {
  let text = code;
  try {
    if (typescript) text = withoutTypes(code);
  } catch (error) {
    return told(error);
  }
  const { result, exceptionDetails } = await evaluated(`${withImports(text)}\n//# sourceURL=code-${count}.js`);
  if (exceptionDetails !== undefined) {
    const { exception, text: complaint } = exceptionDetails;
    return told(exception === undefined ? new Error(complaint) : await valueBehind(exception));
  }
  const value = await valueBehind(result);
  if (value !== undefined && !/;\s*$/.test(code)) answer("result", { main: true, ...bundle(value) });
  return undefined;
}

function withoutTypes(code) {
  if (nodeModule.stripTypeScriptTypes !== undefined) return nodeModule.stripTypeScriptTypes(code, { mode: "strip" });
  const here = `the Node of this sandbox (${process.version}) cannot read TypeScript`;
  throw new SyntaxError(`${here}: it takes 22.13 or newer. Write JavaScript instead.`);
}

/** A console knows no import: statements at the beginning of a line, and calls, become calls of ours. Strings and comments stay. */
function withImports(code) {
  return code.replace(IMPORTS, (all, skipped, statement, clause, _quote, name) => {
    if (skipped !== undefined) return all;
    if (statement === undefined) return LOAD;
    const from = `await ${LOAD}(${JSON.stringify(name)})`;
    if (clause === undefined) return `${from};`;
    const [, plain, star, braces] =
      /^(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+))?\s*(\{[^}]*\})?\s*$/.exec(clause.trim()) ?? [];
    const parts = [];
    if (plain !== undefined) parts.push(`{ default: ${plain} }`);
    if (star !== undefined) parts.push(star);
    if (braces !== undefined) parts.push(braces.replace(/\btype\s+/g, "").replace(/\bas\b/g, ":"));
    return parts.map((part) => `var ${part} = ${from};`).join(" ");
  });
}
const LOAD = "__agentfense_import";
const IMPORTS = new RegExp(
  [
    String.raw`("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\`(?:\\.|[^\`\\])*\`|\/\/[^\n]*|\/\*[^]*?\*\/)`,
    String.raw`^([ \t]*import\s+(?!type\s)(?:([\w$*{},\s]+?)\s+from\s+)?(["'])([^"'\n]+)\4[ \t]*;?)`,
    String.raw`(?<![.\w$])import\s*(?=\()`,
  ].join("|"),
  "gm",
);

function told(thrown) {
  if (thrown instanceof Interrupted) {
    return { name: thrown.name, value: thrown.message, traceback: `${thrown.name}: ${thrown.message}` };
  }
  if (thrown instanceof Error || (thrown !== null && typeof thrown === "object" && typeof thrown.stack === "string")) {
    const stack = String(thrown.stack).split("\n");
    // Below the code there is only what runs it.
    const end = stack.findLastIndex?.((line) => line.includes("code-")) ?? stack.length - 1;
    const kept = end > 0 ? stack.slice(0, end + 1) : stack.filter((line) => !/^\s+at /.test(line));
    return { name: String(thrown.name ?? "Error"), value: String(thrown.message ?? ""), traceback: kept.join("\n") };
  }
  return { name: "Error", value: inspect(thrown), traceback: `Uncaught ${inspect(thrown)}` };
}

function bring(variables) {
  const before = Object.keys(variables).map((name) => [name, process.env[name]]);
  Object.assign(process.env, variables);
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
}

let count = 0;
async function serve(asked) {
  serial = asked.serial;
  if (asked.code.trim() !== "") count += 1;
  answer("started", { count });
  const putBack = bring(asked.env);
  let error;
  try {
    error = await run(asked, count);
  } catch (failure) {
    const isInterrupt = failure instanceof Interrupted || failure?.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED";
    error = told(isInterrupt ? new Interrupted("the code was interrupted") : failure);
  }
  interrupt = undefined;
  putBack();
  if (error !== undefined) answer("error", error);
  answer("end");
}

process.on("SIGINT", () => interrupt?.());
// Promises that nobody waits for, and callbacks, fail on their own: the names stay.
process.on("uncaughtException", (error) => process.stderr.write(`Uncaught ${inspect(error)}\n`));
process.on("unhandledRejection", (error) => process.stderr.write(`Uncaught (in promise) ${inspect(error)}\n`));
process.argv.length = 1;
globalThis.require = createRequire(`${process.cwd()}/code.js`);
globalThis.display = display;
Object.defineProperty(globalThis, LOAD, { value: load });
globalThis.prompt = () => {
  throw new Error("prompt() is not available here: nobody is there to answer. Put the value into the code instead.");
};

answer("ready", { interpreter: `node ${process.versions.node}` });
let text = "";
let turn = Promise.resolve();
const channel = new net.Socket({ fd: 4, readable: true, writable: false });
channel.setEncoding("utf8");
channel.on("data", (piece) => {
  const lines = (text + piece).split("\n");
  text = lines.pop();
  for (const line of lines) turn = turn.then(() => serve(JSON.parse(line)));
});
channel.on("end", () => process.exit(0));

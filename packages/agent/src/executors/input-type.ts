import { compileFunction, Script } from "node:vm";

/** Whether Node is to take code for a module. V8 tells by what it can parse; none of the code is run. */
export function inputType(code: string): "module" | "commonjs" {
  // What is neither will say so itself, when it is run.
  return isFunctionBody(code) && !hasAwaitAtTop(code) ? "commonjs" : "module";
}

/** As Node wraps it. `import`, `export` and most uses of `await` do not fit in there. */
function isFunctionBody(code: string): boolean {
  return parses(() => compileFunction(code, ["exports", "require", "module", "__filename", "__dirname"]));
}

/** `await (x)` could also call a function of that name, except in a static block, where there is neither. */
function hasAwaitAtTop(code: string): boolean {
  if (!code.includes("await")) return false;
  const isStrict = parses(() => new Script(`"use strict";\n${code}`));
  return isStrict && !parses(() => new Script(`class C { static {\n${code}\n} }`));
}

function parses(compile: () => unknown): boolean {
  try {
    compile();
    return true;
  } catch {
    return false;
  }
}

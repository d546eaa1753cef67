import { pause } from "../../commands/stdio.ts";
import { FileFault } from "../../files/file-fault.ts";
import { Complaint, complain, ExitRequest, type Program, pathOf, print } from "../program.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** What concerns the shell itself. */
export const SHELL_BUILTINS = {
  ":": async () => 0,
  true: async () => 0,
  false: async () => 1,

  async exit({ args, state }) {
    throw new ExitRequest(args[0] === undefined ? state.status : Number(args[0]) & 0xff);
  },

  async cd(run) {
    const { args, files, state, stdio, shellPrefix } = run;
    const asked = args[0] ?? state.variables.get("HOME") ?? "/";
    try {
      const path = pathOf(run, asked);
      if (files.stat(path).kind !== "directory") throw new FileFault("ENOTDIR");
      state.cwd = path;
      return 0;
    } catch (error) {
      if (!(error instanceof FileFault)) throw error;
      await stdio.stderr.write(Buffer.from(`${shellPrefix}cd: ${asked}: ${error.message}\n`));
      return 1;
    }
  },

  async pwd(run) {
    await print(run, `${run.state.cwd}\n`);
    return 0;
  },

  async export({ args, state }) {
    for (const arg of args) {
      const [name = "", ...value] = arg.split("=");
      if (!NAME.test(name)) throw new Complaint(`\`${arg}': not a valid identifier`);
      if (value.length > 0) state.variables.set(name, value.join("="));
      state.exported.add(name);
    }
    return 0;
  },

  async unset({ args, state }) {
    for (const name of args) {
      state.variables.delete(name);
      state.exported.delete(name);
    }
    return 0;
  },

  async env(run) {
    const lines = Object.entries(run.state.environment()).map(([name, value]) => `${name}=${value}\n`);
    await print(run, lines.join(""));
    return 0;
  },

  async sleep(run) {
    const seconds = run.args.map(Number);
    const wrong = seconds.findIndex((each) => !(each >= 0));
    if (wrong >= 0) throw new Complaint(`invalid time interval ‘${run.args[wrong]}’`);
    if (seconds.length === 0) throw new Complaint("missing operand");
    await pause(1000 * seconds.reduce((sum, each) => sum + each, 0), run.stdio.signal);
    return 0;
  },

  bash: runShell,
  sh: runShell,
} as const satisfies Record<string, Program>;

async function runShell(run: Parameters<Program>[0]): Promise<number> {
  const [option, script] = run.args;
  if (option === "-c" && script !== undefined) return await run.runScript(script);
  await complain(run, "the mock engine's shell knows -c SCRIPT only");
  return 2;
}

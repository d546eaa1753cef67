import { randomUUID } from "node:crypto";
import { shellWord } from "@agentfense/sdk/engine";
import type { Runnable } from "./runner.ts";

/** Said instead of running anything when the script finds that it has been begun before. */
const TWICE = 97;

/**
 * What is put on the server for one execution: a directory of its own with the program's input and a script that runs it.
 *
 * The script can be started any number of times and runs the code once: it begins with making the directory `started`,
 * which succeeds for one of them only. So a request whose fate is not known can be sent again.
 */
export class OneTimeScript {
  readonly directory: string;
  readonly #workspace: string;
  readonly #plan: Runnable;
  readonly #token: string = randomUUID();

  constructor(workspace: string, plan: Runnable) {
    this.directory = `${workspace}/.agentfense-${randomUUID()}`;
    this.#workspace = workspace;
    this.#plan = plan;
  }

  /** Path → content. */
  files(form: "removes itself" | { readonly env: Readonly<Record<string, string>> }): Readonly<Record<string, string>> {
    return {
      [`${this.directory}/input`]: this.#plan.kind === "program" ? this.#plan.stdin : "",
      [`${this.directory}/run.sh`]:
        form === "removes itself" ? this.#removingScript() : this.#recordingScript(form.env),
    };
  }

  /** Starts the script, if it is still there. */
  get command(): string {
    const script = shellWord(`${this.directory}/run.sh`);
    return `if [ -e ${script} ]; then sh ${script} </dev/null; else ${this.#refusal}; fi`;
  }

  get removal(): string {
    return `rm -rf ${shellWord(this.directory)}`;
  }

  /** Whether this is not the code's end, but what a script says that had been begun before. */
  isSecondStart(exitCode: number | null | undefined, stderr: string): boolean {
    return exitCode === TWICE && stderr.includes(this.#token);
  }

  get #refusal(): string {
    return `{ echo ${this.#token} >&2; exit ${TWICE}; }`;
  }

  get #start(): string {
    return `mkdir ${shellWord(`${this.directory}/started`)} 2>/dev/null || ${this.#refusal}`;
  }

  /** For servers that give both outputs and the exit code: nothing is left when the code begins. */
  #removingScript(): string {
    // In braces, so that all of it is read before it is removed.
    return `{ ${this.#start}
exec <${shellWord(`${this.directory}/input`)}
${this.removal}
cd ${shellWord(this.#workspace)} || exit
${this.#program()}
}
`;
  }

  /** For servers that mix outputs or lose sessions: outputs and exit code are in files, whatever becomes of the session. */
  #recordingScript(env: Readonly<Record<string, string>>): string {
    const exports = Object.entries(env).map(([name, value]) => `export ${name}=${shellWord(value)}`);
    const at = (name: string): string => shellWord(`${this.directory}/${name}`);
    return `{ ${this.#start}
(
cd ${shellWord(this.#workspace)} || exit
${exports.join("\n")}
${this.#program()}
) <${at("input")} >${at("out")} 2>${at("err")}
echo $? >${at("code.new")}
mv ${at("code.new")} ${at("code")}
exit
}
`;
  }

  #program(): string {
    if (this.#plan.kind === "program") return `exec ${this.#plan.argv.map(shellWord).join(" ")}`;
    return `exec "$(command -v bash || command -v sh)" -c ${shellWord(this.#plan.line)}`;
  }
}

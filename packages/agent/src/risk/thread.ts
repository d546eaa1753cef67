import { Worker } from "node:worker_threads";
import type { Language, RiskAssessment } from "../types.ts";

export interface ToRiskThread {
  readonly id: number;
  readonly code: string;
  readonly language: Language;
}

interface FromRiskThread {
  readonly id: number;
  readonly risk: RiskAssessment;
}

/** Far more than the assessment itself allows. */
const TIME_LIMIT_MS = 20_000;

const NOT_ASSESSED: RiskAssessment = {
  level: "HIGH",
  detected: [{ pattern: "not-assessed", reason: "could not be assessed", line: 1 }],
};

/** One for the process, made with the first need; it holds nobody up that wants to end. */
let thread: RiskThread | undefined;

/** As `assessHere`, on a thread of its own. */
export async function assessAside(code: string, language: Language): Promise<RiskAssessment> {
  if (thread === undefined || thread.isGone) thread = new RiskThread();
  return await thread.assess(code, language);
}

class RiskThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, (risk: RiskAssessment) => void>();
  #count = 0;
  isGone = false;

  constructor() {
    // What Node was told on its command line may be about another program: "-e" and its like.
    const options = { name: "agentfense-risk", env: {}, execArgv: [] };
    this.#worker = new Worker(new URL("./thread-main.ts", import.meta.url), options);
    this.#worker.on("message", ({ id, risk }: FromRiskThread) => this.#answer(id, risk));
    this.#worker.on("error", () => this.#end());
    this.#worker.on("exit", () => this.#end());
    this.#worker.unref(); // after the listeners, which take hold of the process
  }

  async assess(code: string, language: Language): Promise<RiskAssessment> {
    const { promise, resolve } = Promise.withResolvers<RiskAssessment>();
    const id = ++this.#count;
    this.#waiting.set(id, resolve);
    this.#worker.postMessage({ id, code, language } satisfies ToRiskThread);
    // Those before it have their time too. The timer also keeps the process alive meanwhile.
    const timer = setTimeout(() => this.#giveUp(id), TIME_LIMIT_MS * this.#waiting.size);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #answer(id: number, risk: RiskAssessment): void {
    this.#waiting.get(id)?.(risk);
    this.#waiting.delete(id);
  }

  #giveUp(id: number): void {
    this.#answer(id, NOT_ASSESSED);
    this.isGone = true;
    void this.#worker.terminate();
  }

  #end(): void {
    this.isGone = true;
    for (const id of [...this.#waiting.keys()]) this.#answer(id, NOT_ASSESSED);
  }
}

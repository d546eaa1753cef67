import { parentPort } from "node:worker_threads";
import { assessHere } from "./assessment.ts";
import type { ToRiskThread } from "./thread.ts";

parentPort!.on("message", ({ id, code, language }: ToRiskThread) => {
  void assessHere(code, language).then((risk) => parentPort!.postMessage({ id, risk }));
});

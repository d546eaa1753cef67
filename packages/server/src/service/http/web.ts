import { getRequestListener } from "@hono/node-server";
import type { Log } from "../../runtime/log.ts";
import { failureResponse } from "../rest/failure-response.ts";
import type { NodeRequest, NodeResponse } from "./listener.ts";

/** Answers requests of Node by what takes a Request and gives a Response; what it throws is told as a failed call is. */
export function webListener(
  log: Log,
  answer: (request: Request, incoming: NodeRequest) => Promise<Response>,
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  return getRequestListener(
    async (request, { incoming }) => {
      try {
        return await answer(request, incoming);
      } catch (error) {
        return failureResponse(error, { log, signal: request.signal });
      }
    },
    // The global Request and Response stay what they are: a library does not change them for everybody.
    { overrideGlobalObjects: false },
  );
}

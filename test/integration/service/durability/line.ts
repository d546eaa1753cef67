import { status } from "@grpc/grpc-js";
import type { GrpcClient, Message, ServiceName } from "../../../support/grpc-client.ts";

/**
 * What came of a call, as far as its caller can know.
 *
 *   acknowledged   the answer arrived: it happened, and stays
 *   refused        an error arrived: it did not happen
 *   lost           neither arrived: it happened as a whole or not at all
 */
export type Outcome =
  | { readonly is: "acknowledged"; readonly answer: Message }
  | { readonly is: "refused" }
  | { readonly is: "lost" };

/** What clients that get in each other's way are told. */
const REFUSALS = new Set([status.NOT_FOUND, status.ALREADY_EXISTS, status.FAILED_PRECONDITION, status.ABORTED]);

/** The way to a server that is going to be killed. */
export class Line {
  readonly client: GrpcClient;
  #isCut = false;
  acknowledged = 0;
  lost = 0;

  constructor(client: GrpcClient) {
    this.client = client;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** From now on answers may be missing. */
  cut(): void {
    this.#isCut = true;
  }

  call(service: ServiceName, method: string, request: Message): Promise<Outcome> {
    return this.attempt(`${method} ${JSON.stringify(request).slice(0, 300)}`, () =>
      this.client.call(service, method, request),
    );
  }

  async attempt(what: string, call: () => Promise<Message>): Promise<Outcome> {
    try {
      const answer = await call();
      this.acknowledged += 1;
      return { is: "acknowledged", answer };
    } catch (error) {
      const { code, details } = error as { code?: number; details?: string };
      if (code !== undefined && REFUSALS.has(code)) return { is: "refused" };
      if (!this.#isCut) throw new Error(`${what} failed with ${code}: ${details}`, { cause: error });
      this.lost += 1;
      return { is: "lost" };
    }
  }
}

import type { MessagePort } from "node:worker_threads";
import { EventFold } from "./events.ts";
import type { GateListeners, PortListeners, TestInternet } from "./gate.ts";
import { NameServer } from "./name-server.ts";
import { NameTable } from "./names.ts";
import { type NetworkPolicy, refusal } from "./policy.ts";

export interface BoxNetworkOptions {
  readonly policy: NetworkPolicy;
  readonly listeners: GateListeners;
  readonly events: MessagePort;
  readonly internet: TestInternet | undefined;
}

/** One box's network, in the thread of all. */
export class BoxNetwork implements AsyncDisposable {
  readonly #events: EventFold;
  readonly #port: MessagePort;
  readonly #names: NameTable;
  #policy: NetworkPolicy;
  #nameServer: NameServer | undefined;

  private constructor({ policy, events, internet }: BoxNetworkOptions) {
    this.#policy = policy;
    this.#port = events;
    this.#events = new EventFold((event) => events.postMessage(event));
    this.#names = new NameTable((host) => this.#policy.names(host), internet?.network);
  }

  static async open(options: BoxNetworkOptions): Promise<BoxNetwork> {
    const network = new BoxNetwork(options);
    await network.#open(options.listeners);
    return network;
  }

  async update(policy: NetworkPolicy, _more: PortListeners | undefined): Promise<void> {
    this.#policy = policy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#nameServer?.[Symbol.asyncDispose]();
    this.#events[Symbol.dispose]();
    this.#port.close();
  }

  async #open(listeners: GateListeners): Promise<void> {
    const network = this;
    const source = {
      get policy() {
        return network.#policy;
      },
      addressOf: (host: string) => this.#names.addressOf(host),
    };
    this.#nameServer = await NameServer.open(listeners, source, (host) =>
      this.#events.add({ kind: "denied", host, port: 0, sentence: refusal(host) }),
    );
  }
}

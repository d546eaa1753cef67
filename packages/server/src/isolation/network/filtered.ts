import type { Listen, NetworkAnswer, SocketOwner } from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import { Queue } from "../waiting.ts";
import type { Gate, GateEvent, GateListeners, NetworkGates, Opening, PortListeners, TestInternet } from "./gate.ts";
import { closerOf } from "./handed-over.ts";
import { NAME_SERVER } from "./names.ts";
import type { NetworkPolicy } from "./policy.ts";
import { openedNames, type SecretWithValue } from "./secrets.ts";

export interface FilteredNetworkOptions {
  readonly gates: NetworkGates;
  readonly policy: NetworkPolicy;
  /** Where connections are opened. */
  readonly opening?: Opening | undefined;
  readonly onEvent: (event: GateEvent) => void;
  readonly internet?: TestInternet | undefined;
}

interface OpenGate {
  readonly gate: Gate;
  readonly listen: Listen;
  readonly ports: Set<number>;
}

/**
 * The network of one sandbox whose hosts a list names. Every life of its box has a gate of its own, since it has a network namespace
 * of its own; a box that broke may still be ending while the next one begins.
 */
export class FilteredNetwork {
  readonly #options: FilteredNetworkOptions;
  readonly #open = new Set<OpenGate>();
  /** Openings and changes take turns: a gate that opens has the list that is in force then. */
  readonly #turns = new Queue();
  #policy: NetworkPolicy;

  constructor(options: FilteredNetworkOptions) {
    this.#options = options;
    this.#policy = options.policy;
  }

  /** See BoxSpec.answerIn. */
  answerIn(listen: Listen, socketOwner?: SocketOwner): Promise<NetworkAnswer> {
    return this.#turns.run(async () => {
      const { gates, opening, onEvent, internet } = this.#options;
      const policy = this.#policy;
      const listeners = await gateListeners(listen, policy.ports);
      const gate = await gates.open({
        policy,
        listeners,
        opening,
        onEvent,
        socketOwner,
        ...(internet === undefined ? {} : { internet }),
      });
      const open = { gate, listen, ports: new Set(policy.ports) };
      this.#open.add(open);
      let closing: Promise<void> | undefined;
      const close = (): Promise<void> => {
        this.#open.delete(open);
        closing ??= gate.close();
        return closing;
      };
      return { close };
    });
  }

  /** See Opening.renew. */
  async renewSecret(name: string, secret: SecretWithValue | undefined): Promise<boolean> {
    return (await this.#options.opening?.renew(name, secret)) ?? false;
  }

  /** Another list, from now on and for every life of the box; or, when a port cannot be had in one of them, the old one in all. */
  async update(policy: NetworkPolicy): Promise<void> {
    const { opening } = this.#options;
    const unopened = openedNames(policy.rules).find((name) => !opening?.names.includes(name));
    if (unopened !== undefined) {
      throw new IsolationError(
        "INVALID_ARGUMENT",
        `connections to ${unopened} cannot be opened while the sandbox runs`,
        {
          hint: "stop it and start it with methods and paths for this host, or list the host without them",
        },
      );
    }
    await this.#turns.run(async () => {
      const changed: OpenGate[] = [];
      const changes: { readonly open: OpenGate; readonly listeners: PortListeners }[] = [];
      try {
        for (const open of this.#open) {
          const added = policy.ports.filter((port) => !open.ports.has(port));
          changes.push({ open, listeners: { tcp: await portListeners(open.listen, added) } });
        }
        for (let next = changes.shift(); next !== undefined; next = changes.shift()) {
          const { open, listeners } = next;
          await open.gate.update(policy, { listeners });
          changed.push(open);
          for (const { port } of listeners.tcp) open.ports.add(port);
        }
      } catch (error) {
        for (const { listeners } of changes) closerOf(listeners)();
        // One that cannot go back lets nothing through any more.
        await Promise.all(changed.map(({ gate }) => gate.update(this.#policy).catch(() => gate.close())));
        throw error;
      }
      this.#policy = policy;
    });
  }
}

async function gateListeners(listen: Listen, ports: readonly number[]): Promise<GateListeners> {
  const [dnsUdp = -1, dnsTcp = -1, ...rest] = await listen([
    { protocol: "udp", address: NAME_SERVER, port: 53 },
    { protocol: "tcp", address: NAME_SERVER, port: 53 },
    ...ports.map(everywhere),
  ]);
  return { dnsUdp, dnsTcp, tcp: withPorts(ports, rest) };
}

async function portListeners(listen: Listen, ports: readonly number[]): Promise<PortListeners["tcp"]> {
  return ports.length === 0 ? [] : withPorts(ports, await listen(ports.map(everywhere)));
}

function everywhere(port: number) {
  return { protocol: "tcp", address: "0.0.0.0", port } as const;
}

function withPorts(ports: readonly number[], descriptors: readonly number[]): PortListeners["tcp"] {
  return ports.map((port, index) => ({ port, descriptor: descriptors[index]! }));
}

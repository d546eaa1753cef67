import { MessageChannel, type MessagePort } from "node:worker_threads";
import { processes } from "@agentfense/fuse";
import type { SocketOwner } from "../backend/backend.ts";
import { descriptorLimit } from "../mount/descriptor-plan.ts";
import { AnsweringThread } from "../threads/answering-thread.ts";
import { closerOf } from "./handed-over.ts";
import type { NetworkPolicy, NetworkRule } from "./policy.ts";
import type { Credentials } from "./secret-holder.ts";
import type { SecretWithValue } from "./secrets.ts";

/**
 * Descriptors of sockets made in a box's network namespace. The gate owns them from then on and closes them, also when it
 * fails to open or to take them over.
 */
export interface GateListeners extends PortListeners {
  /** Bound to NAME_SERVER (names.ts), port 53. */
  readonly dnsUdp: number;
  readonly dnsTcp: number;
}

export interface PortListeners {
  /**
   * Bound to 0.0.0.0 and listening, one for each of the policy's ports. The address that a connection came to says which name is meant. What in the
   * box wants to listen at a listed port itself cannot.
   */
  readonly tcp: readonly { readonly port: number; readonly descriptor: number }[];
}

export interface GateEvent {
  readonly kind: "allowed" | "denied" | "secret_used" | "secret_misplaced";
  readonly host: string;
  /** 0 where only the name was asked for. */
  readonly port: number;
  /** Its name, of the first of its kind, where it could be found. It calls itself what it likes. */
  readonly program?: string;
  /** The name of the secret that was put in. */
  readonly secret?: string;
  /** What a model can act on. */
  readonly sentence?: string;
  /** How many there were since the last event about the same, this one included. */
  readonly count: number;
}

/** To look for a program takes the API's thread milliseconds; it is done so often a second, however many boxes are refused something. */
const MOST_LOOKS_A_SECOND = 5;

/** What a gate's thread wants to know while somebody is refused, beside the events it tells. */
export interface OwnerQuestion {
  readonly id: number;
  readonly protocol: "tcp" | "udp";
  /** The port of the socket in the box. */
  readonly port: number;
}

export interface OwnerAnswer {
  readonly id: number;
  readonly program: string | undefined;
}

/** For tests: what stands for the internet, on this machine. */
export interface TestInternet {
  /** Whom to ask for names, as address:port. */
  readonly nameServers: readonly string[];
  /** Where an address that may be dialled really is; others refuse. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly ports: Readonly<Record<number, number>>;
  /** Whom the world trusts, in PEM, beside those that this host does. */
  readonly certificates?: readonly string[];
  /** A network in place of 198.18.0.0, where the listeners are. */
  readonly network?: string;
}

export interface GateOptions {
  readonly policy: NetworkPolicy;
  readonly listeners: GateListeners;
  /** What opens connections; without it none is opened, and lines with methods or paths let nothing through. */
  readonly opening?: Opening | undefined;
  onEvent(event: GateEvent): void;
  /** Who in the box has a socket; absent where nobody can tell. */
  readonly socketOwner?: SocketOwner | undefined;
  readonly internet?: TestInternet;
}

/** What a box needs so that connections of its can be opened, and the thread's part of it. */
export interface Opening extends Credentials {
  readonly id: number;
  readonly names: readonly string[];
  /** Puts another value in the place of a secret's, or none. Gives whether it is sent from now on; otherwise the next box has it. */
  renew(name: string, secret: SecretWithValue | undefined): Promise<boolean>;
  /** When the box is gone. */
  forget(): Promise<void>;
}

/** The server's side of one box's network. */
export interface Gate {
  /** From now on this list holds, and connections that it does not allow are cut. New ports need listeners; without them the old list stays. */
  update(policy: NetworkPolicy, more?: { readonly listeners?: PortListeners }): Promise<void>;
  /** Ends all connections and lets go of the sockets. */
  close(): Promise<void>;
}

/**
 * The gates of all boxes. Everything that comes out of a box is accepted, read and passed on by one thread of its own, which starts with the first
 * gate; the API's thread sees events alone.
 */
export class NetworkGates {
  #thread: AnsweringThread | undefined;
  #nextId = 1;
  #isClosed = false;
  #looks = { sinceMs: 0, count: 0 };

  async open({ policy, listeners, opening, onEvent, socketOwner, internet }: GateOptions): Promise<Gate> {
    let thread: AnsweringThread;
    try {
      thread = this.#living();
    } catch (error) {
      closerOf(listeners)();
      throw error;
    }
    const id = this.#nextId++;
    const { port1: ours, port2: theirs } = new MessageChannel();
    ours.on("message", (message: GateEvent | OwnerQuestion) => {
      if ("kind" in message) return void onEvent(message);
      const { id, protocol, port } = message;
      const program = this.#mayLook() ? socketOwner?.(protocol, port) : undefined;
      ours.postMessage({ id, program } satisfies OwnerAnswer);
    });
    ours.unref();
    const ask = (request: GateRequest, transfer: MessagePort[] = []) => thread.ask(request, { transfer });
    try {
      const more = { opening: opening?.id, events: theirs, knowsOwners: socketOwner !== undefined, internet };
      await ask({ kind: "open", id, rules: policy.rules, listeners, ...more }, [theirs]);
    } catch (error) {
      ours.close();
      throw error;
    }
    return {
      update: async (next, more = {}) => {
        if (!thread.isAlive) closerOf(more.listeners)();
        await ask({ kind: "update", id, rules: next.rules, listeners: more.listeners });
      },
      close: async () => {
        // A thread that is gone has let go of everything; one that is there closes the channel behind the last event.
        if (thread.isAlive) await ask({ kind: "close", id });
        else ours.close();
      },
    };
  }

  /**
   * For a box that is about to be made: an authority for these names, and placeholders for its secrets. Their values are in the thread
   * alone from then on. A process that holds any leaves no image of its memory when it dies.
   */
  async prepare(names: readonly string[], secrets: readonly SecretWithValue[]): Promise<Opening> {
    if (secrets.length > 0) leaveNoCore();
    const thread = this.#living();
    const id = this.#nextId++;
    const credentials = (await thread.ask({ kind: "keep", id, names, secrets } satisfies GateRequest)) as Credentials;
    const renew = async (name: string, secret: SecretWithValue | undefined): Promise<boolean> =>
      (await thread.ask({ kind: "renew", id, name, secret } satisfies GateRequest)) as boolean;
    const forget = async (): Promise<void> => {
      // A thread that is gone, or goes meanwhile, has forgotten everything.
      if (thread.isAlive) await thread.ask({ kind: "forget", id } satisfies GateRequest).catch(() => {});
    };
    return { ...credentials, id, names, renew, forget };
  }

  #mayLook(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#looks.sinceMs > 1000) this.#looks = { sinceMs: nowMs, count: 0 };
    return this.#looks.count++ < MOST_LOOKS_A_SECOND;
  }

  #living(): AnsweringThread {
    if (this.#isClosed) throw new Error("the network's thread is closed");
    if (!this.#thread?.isAlive) {
      const main = new URL("./worker.ts", import.meta.url);
      const data = { descriptors: Math.floor(descriptorLimit() / 8) };
      this.#thread = new AnsweringThread({ main, name: "agentfense-network", data, holdsProcess: false });
    }
    return this.#thread;
  }

  /** Ends the thread, with all gates that are still open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#thread?.abandon(new Error("the network's thread is closed"));
  }
}

/** For a process that has values of secrets in its memory. */
export function leaveNoCore(): void {
  processes.leaveNoCore();
}

/** What the gates ask of their thread. */
export type GateRequest =
  | {
      readonly kind: "open";
      readonly id: number;
      readonly rules: readonly NetworkRule[];
      readonly listeners: GateListeners;
      readonly opening: number | undefined;
      readonly events: MessagePort;
      readonly knowsOwners: boolean;
      readonly internet: TestInternet | undefined;
    }
  | {
      readonly kind: "update";
      readonly id: number;
      readonly rules: readonly NetworkRule[];
      readonly listeners: PortListeners | undefined;
    }
  | { readonly kind: "close"; readonly id: number }
  | {
      readonly kind: "keep";
      readonly id: number;
      readonly names: readonly string[];
      readonly secrets: readonly SecretWithValue[];
    }
  | {
      readonly kind: "renew";
      readonly id: number;
      readonly name: string;
      readonly secret: SecretWithValue | undefined;
    }
  | { readonly kind: "forget"; readonly id: number };

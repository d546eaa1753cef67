import { setTimeout as sleep } from "node:timers/promises";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@agentfense/protocol/health";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";

/** Whether the server takes work, and the word that it stops. */
export class Serving {
  readonly #ready: () => boolean;
  readonly #stopping = new AbortController();
  /** Aborts when the server begins to stop. */
  readonly stopping: AbortSignal = this.#stopping.signal;

  constructor(ready: () => boolean) {
    this.#ready = ready;
  }

  get isReady(): boolean {
    return !this.isDraining && this.#ready();
  }

  get isDraining(): boolean {
    return this.stopping.aborted;
  }

  drain(): void {
    this.#stopping.abort();
  }
}

/** How often a watch looks whether something changed. */
const LOOK_MS = 500;

/** gRPC's health checks: of the server as a whole (""), and of each service by its full name. */
export function registerHealth(router: ConnectRouter, serving: Serving, services: ReadonlySet<string>): void {
  const statusOf = (service: string): ServingStatus => {
    if (service !== "" && !services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    return serving.isReady ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  };

  router.service(Health, {
    check({ service }) {
      const status = statusOf(service);
      if (status === ServingStatus.SERVICE_UNKNOWN) throw new ConnectError("unknown service", Code.NotFound);
      return { status };
    },

    async *watch({ service }, { signal }) {
      let told: ServingStatus | undefined;
      while (!signal.aborted) {
        const status = statusOf(service);
        if (status !== told) yield { status };
        told = status;
        if (serving.isDraining) return;
        await sleep(LOOK_MS, undefined, { signal: AbortSignal.any([signal, serving.stopping]) }).catch(() => {});
      }
    },
  });
}

/** A place in the network of a box where the server listens. */
export interface ListeningPlace {
  readonly protocol: "tcp" | "udp";
  readonly address: string;
  readonly port: number;
}

/**
 * Makes sockets that listen in the network of one box, from outside: all of these, in their order, or none. The descriptors are the
 * caller's. Before the first of them the loopback device there has got the address that those of names are taken from.
 */
export type Listen = (places: readonly ListeningPlace[]) => Promise<readonly number[]>;

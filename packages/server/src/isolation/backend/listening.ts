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

/** The name of the program in a box that has the socket with this local port, if it can be found quickly. A program calls itself what it likes. */
export type SocketOwner = (protocol: "tcp" | "udp", port: number) => string | undefined;

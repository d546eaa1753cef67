import { status } from "@grpc/grpc-js";
import { expect } from "vitest";
import type { Random } from "../../../conformance/model/random.ts";
import { failureOf, type GrpcClient, type Message } from "../../../support/grpc-client.ts";
import type { Testimony } from "./events.ts";
import type { Line } from "./line.ts";

interface KnownKey {
  readonly secret: string;
  revocation: "none" | "lost" | "acknowledged";
}

/** A client that makes and revokes API keys. */
export class Keeper {
  readonly #random: Random;
  readonly #testimony: Testimony;
  readonly #keys = new Map<string, KnownKey>();
  /** Ids of every key there ever was. */
  readonly #seen = new Set<string>();
  /** Names of keys whose creation is uncertain. */
  readonly #lostNames = new Set<string>();

  constructor(random: Random, testimony: Testimony) {
    this.#random = random;
    this.#testimony = testimony;
  }

  async run(line: Line): Promise<void> {
    while (!line.isCut) {
      const [id, key] = this.#random.pick([...this.#keys, ["", undefined] as const]);
      if (key === undefined || key.revocation !== "none") await this.#create(line);
      else await this.#revoke(line, id, key);
    }
  }

  async #create(line: Line): Promise<void> {
    const name = `key-${this.#random.below(2 ** 30)}`;
    const outcome = await line.call("SystemService", "CreateKey", { owner_id: "somebody", name });
    if (outcome.is === "lost") this.#lostNames.add(name);
    if (outcome.is !== "acknowledged") return;
    const { id } = outcome.answer.key as { id: string };
    this.#seen.add(id);
    this.#keys.set(id, { secret: String(outcome.answer.secret), revocation: "none" });
    this.#testimony.expect({ type: "key_created", data: { key_id: id, name } });
  }

  async #revoke(line: Line, id: string, key: KnownKey): Promise<void> {
    const outcome = await line.call("SystemService", "RevokeKey", { key_id: id });
    if (outcome.is !== "refused") key.revocation = outcome.is;
    if (outcome.is === "acknowledged") this.#testimony.expect({ type: "key_revoked", data: { key_id: id } });
  }

  /** Keys that were made work, those that were revoked do not, and there are no others. */
  async settle(client: GrpcClient): Promise<void> {
    const { keys } = (await client.call("SystemService", "ListKeys")) as { keys: Message[] };
    const strays = keys.filter(({ id, name }) => /^key-/.test(String(name)) && !this.#seen.has(String(id)));
    expect(strays.filter(({ name }) => !this.#lostNames.has(String(name)))).toEqual([]);
    for (const { id } of strays) {
      this.#seen.add(String(id));
      await client.call("SystemService", "RevokeKey", { key_id: id });
    }
    const listed = new Map(keys.map((key) => [key.id, key]));
    for (const [id, { secret, revocation }] of this.#keys) {
      const isRevoked = listed.get(id)?.revoked_at !== null;
      expect({ id, isListed: listed.has(id) }).toEqual({ id, isListed: true });
      if (revocation !== "lost") expect({ id, isRevoked }).toEqual({ id, isRevoked: revocation === "acknowledged" });
      const answer = client.call("SystemService", "GetServerInfo", {}, { key: secret });
      if (isRevoked) expect(await failureOf(answer)).toMatchObject({ code: status.UNAUTHENTICATED });
      else expect(await answer).toMatchObject({ owner_id: "somebody" });
      if (isRevoked) this.#keys.delete(id); // nothing can become of it any more
    }
  }
}

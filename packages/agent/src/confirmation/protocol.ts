import { z } from "zod";
import { RISK_LEVELS } from "../types.ts";
import type { ConfirmationRequest } from "./confirmation.ts";

// The protocol of /v1/confirmations: JSON texts over a WebSocket of the subprotocol "agentfense.confirmations.v1".
//
// The first message of a client is `hello` and says what it is; the server answers with `welcome`. Then
//
//   reviewer                                          requester
//   ← pending   all that wait for an answer, in       → request   under a name of its own, `ref`
//               parts; the last one is `complete`     ← answer    for that `ref`, once
//   ← requested somebody asks                         → withdraw  asks no longer; there is no answer then
//   ← resolved  it is over: answered (by anybody),
//               too late, or no longer asked
//   → answer    with the hash of what was shown
//   ← answer_accepted, or answer_refused with a reason
//
// `requested` and `resolved` may come between the parts of `pending`. Who sends what is not a message gets `error` and is
// disconnected with code 1008. A requester that disconnects has withdrawn what it asked; it may ask again. The server sends
// a ping at least every `heartbeatMs`, and drops who did not answer the last one.

/** Who sent something that is not allowed, in the terms of RFC 6455. */
export const POLICY_VIOLATION = 1008;
export const GOING_AWAY = 1001;

/** The longest comment that a reviewer may give. */
export const LONGEST_COMMENT = 4096;

const time = z.iso.datetime().transform((text) => new Date(text));
/** People read it in lists: without line breaks and controls. */
const label = z
  .string()
  .max(256)
  .regex(/^\P{C}*$/u);
const id = z.string().max(128);
const hash = z.string().max(128);

const request = z.strictObject({
  sessionId: z.string(),
  action: z.string(),
  code: z.string(),
  risk: z.strictObject({
    level: z.enum(RISK_LEVELS),
    detected: z.array(z.strictObject({ pattern: z.string(), reason: z.string(), line: z.int() })),
  }),
  reason: z.string(),
  expiresAt: time,
});

export const clientMessage = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("hello"), role: z.enum(["reviewer", "requester"]), name: label.optional() }),
  z.strictObject({
    type: z.literal("answer"),
    id,
    hash,
    approve: z.boolean(),
    comment: z.string().max(LONGEST_COMMENT).optional(),
  }),
  z.strictObject({ type: z.literal("request"), ref: id, request }),
  z.strictObject({ type: z.literal("withdraw"), ref: id }),
]);

const pending = z.object({
  id,
  hash,
  /** Told to administrators, who see everybody's. */
  ownerId: z.string().optional(),
  requestedAt: time,
  request,
});

const answerRefusal = z.enum([
  /** There is none of this id, or it is somebody else's. */
  "unknown",
  "already_answered",
  "expired",
  /** Whoever asked does so no longer. */
  "withdrawn",
  /** What was shown is not what is asked. */
  "hash_mismatch",
  /** This key may watch, not answer. */
  "not_allowed",
]);

const resolution = z.object({
  decision: z.enum(["approved", "denied", "timed_out", "withdrawn"]),
  reviewer: z.string().optional(),
  comment: z.string().optional(),
});

/** New fields may come: clients leave out what they do not know. */
export const serverMessage = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("welcome"),
    /** May answer; a requester never. */
    mayAnswer: z.boolean(),
    heartbeatMs: z.number().positive(),
    /** The longest JSON text of `request`. */
    maxRequestBytes: z.number().positive(),
  }),
  z.object({ type: z.literal("pending"), requests: z.array(pending), complete: z.boolean() }),
  z.object({ type: z.literal("requested"), request: pending }),
  resolution.extend({ type: z.literal("resolved"), id }),
  z.object({ type: z.literal("answer_accepted"), id }),
  z.object({ type: z.literal("answer_refused"), id, reason: answerRefusal }),
  z.object({
    type: z.literal("answer"),
    ref: id,
    decision: z.enum(["approved", "denied", "timed_out"]),
    hash,
    reviewer: z.string().optional(),
    comment: z.string().optional(),
  }),
  z.object({ type: z.literal("error"), message: z.string() }),
]);

/** As received. */
export type ClientMessage = z.output<typeof clientMessage>;
export type ServerMessage = z.output<typeof serverMessage>;
/** As sent: times are texts. */
export type ClientText = z.input<typeof clientMessage>;
export type ServerText = z.input<typeof serverMessage>;

/** Why an answer does not count. */
export type AnswerRefusal = z.output<typeof answerRefusal>;
/** How a request ended. */
export type ConfirmationResolution = z.output<typeof resolution>;

/** What waits for an answer. */
export interface PendingConfirmation {
  readonly id: string;
  /** The hash of `request`: an answer names it. */
  readonly hash: string;
  /** Undefined: nobody's in particular, administrators see it. */
  readonly ownerId?: string | undefined;
  readonly requestedAt: Date;
  readonly request: ConfirmationRequest;
}

/** A request as it is sent. */
export function requestText({ sessionId, action, code, risk, reason, expiresAt }: ConfirmationRequest) {
  return {
    sessionId,
    action,
    code,
    risk: {
      level: risk.level,
      detected: risk.detected.map((seen) => ({ pattern: seen.pattern, reason: seen.reason, line: seen.line })),
    },
    reason,
    expiresAt: expiresAt.toISOString(),
  };
}

/** How large a request is as it is sent. */
export function requestBytes(request: ConfirmationRequest): number {
  return Buffer.byteLength(JSON.stringify(requestText(request)));
}

/** The message in a text; undefined when there is none. */
export function parseMessage<Message>(schema: z.ZodType<Message>, data: string): Message | undefined {
  try {
    return schema.safeParse(JSON.parse(data)).data;
  } catch {
    return undefined; // no JSON
  }
}

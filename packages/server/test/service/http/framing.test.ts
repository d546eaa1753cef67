import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { UploadChunkSchema, UploadResultSchema } from "@agentfense/protocol/codebase";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestService, type TestService } from "./fixture.ts";

// Messages of gRPC as bytes: how they come apart on their way is nobody's choice, and what they claim to be anybody's.

let service: TestService;
let session: ClientHttp2Session;

beforeAll(async () => {
  service = await openTestService();
  session = connect(`http://${service.grpc}`);
});
afterAll(async () => {
  session.close();
  await service[Symbol.asyncDispose]();
});
beforeEach(() => {
  service.journal.uploadedBytes = 0;
});

function chunk(size: number): Uint8Array {
  const content = { case: "data", value: new Uint8Array(size).fill(7) } as const;
  return toBinary(UploadChunkSchema, create(UploadChunkSchema, { content }));
}

function enveloped(message: Uint8Array, { flag = 0, length = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

interface Answer {
  readonly status: number;
  readonly message: string;
  readonly size: number;
}

/** Sends these pieces, each by itself, and their end unless the call is to stay open. */
async function upload(pieces: Iterable<Uint8Array>, { ends = true } = {}): Promise<Answer> {
  const request = session.request({
    ":method": "POST",
    ":path": "/sandbox.v1.CodebaseService/UploadFiles",
    "content-type": "application/grpc",
    te: "trailers",
  });
  const body: Buffer[] = [];
  let trailers: IncomingHttpHeaders = {};
  request.on("trailers", (given) => {
    trailers = given;
  });
  request.on("data", (data: Buffer) => body.push(data));
  const ended = once(request, "end");
  for (const piece of pieces) await new Promise((sent) => request.write(piece, sent));
  if (ends) request.end();
  await ended;
  request.close();
  const bytes = Buffer.concat(body).subarray(5);
  return {
    status: Number(trailers["grpc-status"]),
    message: decodeURIComponent(String(trailers["grpc-message"] ?? "")),
    size: bytes.length === 0 ? 0 : Number(fromBinary(UploadResultSchema, bytes).size),
  };
}

test("a stream of messages is the same however its bytes come apart", async () => {
  const stream = Buffer.concat([1, 0, 300, 70_000, 5].map((size) => enveloped(chunk(size))));
  const pieces = function* (size: number): Generator<Uint8Array> {
    for (let at = 0; at < stream.length; at += size) yield stream.subarray(at, at + size);
  };
  const whole = { status: 0, message: "", size: 70_306 };
  for (const size of [stream.length, 16_384, 997]) {
    service.journal.uploadedBytes = 0;
    expect(await upload(pieces(size)), `pieces of ${size}`).toEqual(whole);
  }
  service.journal.uploadedBytes = 0;
  const first = enveloped(chunk(300));
  expect(await upload([...first].map((byte) => Buffer.of(byte)))).toMatchObject({ status: 0, size: 300 });
  service.journal.uploadedBytes = 0;
  expect(await upload([])).toMatchObject({ status: 0, size: 0 });
});

test.each<[string, Uint8Array, boolean, number, RegExp]>([
  ["that ends within a prefix", Buffer.of(0, 0, 0), true, 3, /incomplete/],
  ["that ends within a message", enveloped(chunk(9), { length: 100 }), true, 3, /incomplete/],
  ["with a compressed message that no header speaks of", enveloped(chunk(9), { flag: 1 }), false, 13, /compressed/],
  [
    "with a message that claims to be larger than any may be",
    enveloped(chunk(9), { length: 0xffff_ffff }),
    false,
    8,
    /larger/,
  ],
  ["with a message that is none", enveloped(Buffer.of(0xff, 0xff)), false, 13, /parse/],
])("a stream %s is refused, at once where more could come", async (_, bytes, ends, status, message) => {
  const answer = await upload([enveloped(chunk(1)), bytes], { ends });
  expect(answer).toEqual({ status, message: expect.stringMatching(message), size: 0 });
  // The connection is as good as before.
  expect(await upload([enveloped(chunk(4))])).toMatchObject({ status: 0 });
});

import { create, type DescEnum, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import fc from "fast-check";

/** Any message of a type, built from its descriptor. */
export function messageArbitrary(desc: DescMessage, depth = 0): fc.Arbitrary<Message> {
  const wellKnown = WELL_KNOWN[desc.typeName];
  if (wellKnown !== undefined) {
    return wellKnown.map((init) => create(desc, init));
  }
  const plain = desc.fields.filter((field) => field.oneof === undefined);
  const fields = Object.fromEntries(plain.map((field) => [field.localName, fieldArbitrary(field, depth)]));
  const oneofs = Object.fromEntries(
    desc.oneofs.map((oneof) => [
      oneof.localName,
      fc.oneof(
        fc.constant({ case: undefined }),
        ...oneof.fields.map((field) => valueArbitrary(field, depth).map((value) => ({ case: field.localName, value }))),
      ),
    ]),
  );
  return fc.record({ ...fields, ...oneofs }).map((init) => create(desc, init));
}

function fieldArbitrary(field: DescField, depth: number): fc.Arbitrary<unknown> {
  const value = valueArbitrary(field, depth);
  switch (field.fieldKind) {
    case "list":
      return fc.array(value, { maxLength: 3 });
    case "map":
      return fc.dictionary(TEXT, value, { maxKeys: 3, noNullPrototype: true });
    case "message":
      return fc.option(value, { nil: undefined });
    default:
      return field.proto.proto3Optional ? fc.option(value, { nil: undefined }) : value;
  }
}

function valueArbitrary(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.message !== undefined) {
    return depth > 3 ? fc.constant(create(field.message)) : messageArbitrary(field.message, depth + 1);
  }
  return field.enum === undefined ? SCALARS[field.scalar] : enumArbitrary(field.enum);
}

/** Known values, and one that a newer client may know. */
function enumArbitrary(desc: DescEnum): fc.Arbitrary<number> {
  return fc.constantFrom(...desc.values.map((value) => value.number), 99);
}

const TEXT = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(
    "",
    "a/b",
    "%2f",
    "?",
    "#",
    "&=",
    "+",
    " ",
    "__proto__",
    "[x]",
    "a.b",
    "\u0000",
    "ü",
    "😀",
    "\\",
    '"',
  ),
);
const INT32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const UINT32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const INT64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const UINT64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const FLOAT = fc.float({ noDefaultInfinity: true, noNaN: true });

const SCALARS: Readonly<Record<ScalarType, fc.Arbitrary<unknown>>> = {
  [ScalarType.STRING]: TEXT,
  [ScalarType.BOOL]: fc.boolean(),
  [ScalarType.BYTES]: fc.uint8Array({ maxLength: 20 }),
  [ScalarType.INT32]: INT32,
  [ScalarType.SINT32]: INT32,
  [ScalarType.SFIXED32]: INT32,
  [ScalarType.UINT32]: UINT32,
  [ScalarType.FIXED32]: UINT32,
  [ScalarType.INT64]: INT64,
  [ScalarType.SINT64]: INT64,
  [ScalarType.SFIXED64]: INT64,
  [ScalarType.UINT64]: UINT64,
  [ScalarType.FIXED64]: UINT64,
  [ScalarType.DOUBLE]: FLOAT,
  [ScalarType.FLOAT]: FLOAT,
};

const NANOS = fc.integer({ min: 0, max: 999_999_999 });
const WELL_KNOWN: Readonly<Record<string, fc.Arbitrary<Record<string, unknown>>>> = {
  "google.protobuf.Timestamp": fc.record({
    seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
    nanos: NANOS,
  }),
  "google.protobuf.Duration": fc
    .record({ seconds: fc.bigInt({ min: 0n, max: 315_576_000_000n }), nanos: NANOS, negative: fc.boolean() })
    .map(({ seconds, nanos, negative }) => (negative ? { seconds: -seconds, nanos: -nanos } : { seconds, nanos }))
    // A negative zero is no other number on the wire.
    .map(({ seconds, nanos }) => ({ seconds, nanos: nanos + 0 })),
  "google.protobuf.Struct": fc.dictionary(TEXT, TEXT, { maxKeys: 3, noNullPrototype: true }).map((entries) => ({
    fields: Object.fromEntries(
      Object.entries(entries).map(([key, value]) => [key, { kind: { case: "stringValue", value } }]),
    ),
  })),
};

import { ScalarType } from "@bufbuild/protobuf";
import { invalidArgument } from "./errors.ts";

const INT32 = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
const UINT32 = { min: 0n, max: 2n ** 32n - 1n };
const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const UINT64 = { min: 0n, max: 2n ** 64n - 1n };

/** Checks one scalar of a request's JSON and gives it the form that the library reads without loss. */
export const SCALARS: Readonly<Record<ScalarType, (json: unknown, at: string) => string | number | boolean>> = {
  [ScalarType.STRING]: text,
  [ScalarType.BOOL]: (json, at) => (typeof json === "boolean" ? json : refuse(at, "must be true or false")),
  [ScalarType.BYTES]: base64,
  [ScalarType.INT32]: (json, at) => Number(integer(json, at, INT32)),
  [ScalarType.SINT32]: (json, at) => Number(integer(json, at, INT32)),
  [ScalarType.SFIXED32]: (json, at) => Number(integer(json, at, INT32)),
  [ScalarType.UINT32]: (json, at) => Number(integer(json, at, UINT32)),
  [ScalarType.FIXED32]: (json, at) => Number(integer(json, at, UINT32)),
  [ScalarType.INT64]: (json, at) => integer(json, at, INT64).toString(),
  [ScalarType.SINT64]: (json, at) => integer(json, at, INT64).toString(),
  [ScalarType.SFIXED64]: (json, at) => integer(json, at, INT64).toString(),
  [ScalarType.UINT64]: (json, at) => integer(json, at, UINT64).toString(),
  [ScalarType.FIXED64]: (json, at) => integer(json, at, UINT64).toString(),
  [ScalarType.DOUBLE]: float,
  [ScalarType.FLOAT]: float,
};

function text(json: unknown, at: string): string {
  if (typeof json !== "string") {
    refuse(at, "must be a string");
  }
  // Half a surrogate pair would arrive as another string over gRPC.
  return json.isWellFormed() ? json : refuse(at, "is not valid Unicode");
}

function base64(json: unknown, at: string): string {
  if (typeof json !== "string" || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(json) || json.replaceAll("=", "").length % 4 === 1) {
    refuse(at, "must be a string in base64");
  }
  return json;
}

/** Numbers and decimal strings; also `1.0` and `"1e3"`, which JSON counts as integers. */
export function integer(json: unknown, at: string, range: { min: bigint; max: bigint } = INT32): bigint {
  let value: bigint;
  if (typeof json === "string" && /^-?[0-9]{1,40}$/.test(json)) {
    value = BigInt(json);
  } else if (
    typeof json === "number" ||
    (typeof json === "string" && /^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$/.test(json))
  ) {
    const number = Number(json);
    if (!Number.isInteger(number)) {
      refuse(at, "must be a whole number");
    }
    if (!Number.isSafeInteger(number)) {
      refuse(at, "is too large to be exact as a number; write it as a string");
    }
    value = BigInt(number);
  } else {
    refuse(at, "must be a whole number");
  }
  return value >= range.min && value <= range.max ? value : refuse(at, `must be between ${range.min} and ${range.max}`);
}

function float(json: unknown, at: string): string | number {
  if (json === "NaN" || json === "Infinity" || json === "-Infinity") {
    return json;
  }
  const number = typeof json === "string" && json.trim() !== "" ? Number(json) : json;
  return typeof number === "number" && Number.isFinite(number) ? number : refuse(at, "must be a number");
}

export function refuse(at: string, reason: string): never {
  throw invalidArgument(`${at} ${reason}`);
}

export {
  ERROR_DOMAIN,
  ERRORS,
  type ErrorCode,
  type ErrorKind,
  httpStatusOf,
  STATUS_NUMBERS,
  type StatusName,
} from "./errors.ts";

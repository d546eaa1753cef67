export { ERROR_DOMAIN, ERRORS, type ErrorCode, type ErrorKind } from "./errors.ts";
export { httpStatusOf, STATUS_NUMBERS, type StatusName } from "./status.ts";

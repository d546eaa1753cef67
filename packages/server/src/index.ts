export { openServer, type RunningServer } from "./open-server.ts";
export { fitsSocket } from "./service/http/address.ts";
export type { Door, DoorCall } from "./service/http/doors.ts";

export { aioDoor } from "./aio/door.ts";
export { Refusal as AioRefusal } from "./aio/envelope.ts";
export type { AioBrowser, AioBrowserInfo, AioDoorOptions } from "./aio/options.ts";
export type { Door, DoorCall, DoorCaller } from "./door.ts";
export { type E2bDoorOptions, e2bDoors } from "./e2b/door.ts";
export type { E2bTemplate, E2bTemplates } from "./e2b/templates.ts";

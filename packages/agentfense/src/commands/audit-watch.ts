import { FILTER_HELP, FILTER_OPTIONS, printEvent, readFilter } from "../audit/events.ts";
import { remoteCommand } from "../remote/command.ts";
import { parseCount } from "../size.ts";

const HELP = `Usage: agentfense audit watch [OPTIONS]

The events of the audit log as they happen, until interrupted. With --json, one object a line.

${FILTER_HELP}
  --after NUMBER    begin after the event with this number instead of with what happens next
`;

export const auditWatch = remoteCommand({
  name: "audit watch",
  help: HELP,
  options: { ...FILTER_OPTIONS, after: { type: "string" } },
  takes: [],
  async run({ server, values, json }) {
    const after = values.after === undefined ? {} : { afterSequence: BigInt(parseCount(values.after, "--after")) };
    for await (const event of server.events.watchEvents({ ...readFilter(values), ...after })) {
      await printEvent(event, json);
    }
    return 0;
  },
});

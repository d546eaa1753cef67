import { timestampMs } from "@bufbuild/protobuf/wkt";
import { FILTER_HELP, FILTER_OPTIONS, printEvent, readFilter } from "../audit/events.ts";
import { UsageError } from "../command.ts";
import { remoteCommand } from "../remote/command.ts";
import { parseMoment } from "../remote/moments.ts";
import { PAGE_SIZE } from "../remote/pages.ts";

const HELP = `Usage: agentfense audit list [OPTIONS]

The events of the audit log, oldest first, one a line: number, time, level, type, whom it is about, and its facts.

${FILTER_HELP}
  --since TIME      from 2026-02-03T10:15:30Z on, or 2h for that long ago
  --until TIME      before that
  --follow          then what happens, until interrupted
`;

export const auditList = remoteCommand({
  name: "audit list",
  help: HELP,
  options: {
    ...FILTER_OPTIONS,
    since: { type: "string" },
    until: { type: "string" },
    follow: { type: "boolean" },
  },
  takes: [],
  async run({ server, values, json }) {
    if (values.follow && values.until !== undefined) throw new UsageError("--follow has no end; leave out --until");
    const filter = readFilter(values);
    const now = Date.now();
    const after = values.since === undefined ? undefined : parseMoment(values.since, "--since", now);
    const before = values.until === undefined ? undefined : parseMoment(values.until, "--until", now);
    const query = { ...filter, ...(after && { after }), ...(before && { before }), pageSize: PAGE_SIZE };
    let last = 0n;
    for (let pageToken = ""; ; ) {
      const page = await server.events.listEvents({ ...query, pageToken });
      for (const event of page.events) {
        await printEvent(event, json);
        last = event.sequence;
      }
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    if (!values.follow) return 0;
    // From the last one on, so that nothing between the list and the watch is missed.
    for await (const event of server.events.watchEvents({ ...filter, afterSequence: last })) {
      const early = after !== undefined && event.time !== undefined && timestampMs(event.time) < timestampMs(after);
      if (!early) await printEvent(event, json);
    }
    return 0;
  },
});

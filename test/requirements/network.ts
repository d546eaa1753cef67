import { requirements } from "./requirement.ts";

/** NET: from a filtered network nothing is reached but what its list names. */
export const NETWORK = requirements([
  ["NET-01", "No notation of an address reaches anything."],
  [
    "NET-02",
    "A listed name reaches no loopback, private, link-local, metadata or multicast address, whenever it resolves to one.",
  ],
  ["NET-03", "Questions for names are answered from the list and never leave."],
  ["NET-04", "A connection to a listed host is one to that host, whatever its TLS client says."],
  ["NET-05", "A request that can be read in two ways, or names another host, is refused."],
  ["NET-06", "There is no other way out: no UDP, ICMP, raw or packet socket, no change of routes, no other device."],
  ["NET-07", "Connections are bounded, and other sandboxes do not notice those that are too many."],
  ["NET-08", "What answers in one sandbox's network answers nobody in another's."],
  ["NET-09", "No secret is ever inside."],
  ["NET-10", "What would make the host's programs trust the box is marked at review.", { later: "marks at review" }],
  ["NET-11", "A connection that a new list does not allow is cut."],
  ["NET-12", "Letting everything through to learn a list needs the operator.", { later: "learning a list from a run" }],
]);

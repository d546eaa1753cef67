import { createHash } from "node:crypto";
import type { Content, OpenApiDocument, Operation, Parameter, Schema, Tag } from "./document.ts";
import { type Html, html, joined, type Part } from "./html.ts";

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem 1.5rem 4rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; } h3 { margin-top: 2rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.875rem; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8886; border-radius: 0.375rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8883; }
nav ul { columns: 16rem; padding-left: 1rem; } nav li { break-inside: avoid; }
.verb { font-weight: 700; } .quiet { opacity: 0.75; }
`;

/** For the header of the page: nothing but its own style, which is named by its hash. */
export const API_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The API for people: one page that needs nothing else. Everything in it is escaped where it is put in. */
export function apiPage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation })),
  );
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title} API</title>
<style>${STYLE_PART}</style>
</head>
<body>
<h1>${document.info.title} API</h1>
<p class="quiet">Version ${document.info.version} · <a href="openapi.json">openapi.json</a></p>
<p>${document.info.description}</p>
<nav><ul>
${joined(document.tags.map((tag) => html`<li><a href="#${tag.name}">${tag.name}</a></li>`))}
<li><a href="#messages">Messages</a></li>
</ul></nav>
${joined(document.tags.map((tag) => service(tag, operations)))}
<h2 id="messages">Messages</h2>
${joined(Object.entries(document.components.schemas).map(([name, schema]) => messageSection(name, schema)))}
</body>
</html>
`;
  return page.text;
}

const STYLE_PART: Html = { text: STYLE };

interface Listed {
  readonly path: string;
  readonly verb: string;
  readonly operation: Operation;
}

function service(tag: Tag, operations: readonly Listed[]): Html {
  const own = operations.filter(({ operation }) => operation.tags.includes(tag.name));
  return html`<h2 id="${tag.name}">${tag.name}</h2>
<p>${tag.description ?? ""}</p>
${joined(own.map(operationSection))}
${joined(
  tag["x-grpc-only"].map(
    (method) => html`<h3>${method.method.split("/").at(-1) ?? ""}</h3>
<p>${method.description ?? ""}</p>
<p class="quiet">gRPC only: <code>${method.method}</code>, ${method.request} → ${method.response}</p>`,
  ),
)}`;
}

function operationSection({ path, verb, operation }: Listed): Html {
  return html`<h3 id="${operation.operationId}">${operation.summary}</h3>
<p><code><span class="verb">${verb}</span> ${path}</code></p>
<p>${operation.description ?? ""}</p>
${operation.parameters.length === 0 ? "" : parameterTable(operation.parameters)}
${operation.requestBody === undefined ? "" : html`<p>Request: ${content(operation.requestBody.content)}</p>`}
<p>Answer: ${joined(Object.values(operation.responses).map((response) => ("content" in response ? content(response.content) : "")))}
<span class="quiet">· gRPC <code>${operation["x-grpc-method"]}</code></span></p>
<pre><code>${operation["x-curl"]}</code></pre>`;
}

function parameterTable(parameters: readonly Parameter[]): Html {
  return html`<table><thead><tr><th>Parameter</th><th>In</th><th>Type</th><th></th></tr></thead><tbody>
${joined(
  parameters.map(
    (each) =>
      html`<tr><td><code>${each.name}</code></td><td>${each.in}</td><td>${typeName(each.schema)}</td><td>${each.description ?? ""}${each["x-many-segments"] ? " May contain slashes." : ""}</td></tr>`,
  ),
)}</tbody></table>`;
}

function content(types: Content): Html {
  return joined(
    Object.entries(types).map(([mediaType, { schema }]) => html`<code>${mediaType}</code> ${typeName(schema)} `),
  );
}

function messageSection(name: string, schema: Schema): Html {
  const properties = Object.entries(schema.properties ?? {});
  return html`<h3 id="message-${name}">${name}</h3>
<p>${schema.description ?? ""}</p>
${
  schema.enum === undefined
    ? ""
    : html`<p>${joined(schema.enum.map((value) => html`<code>${String(value)}</code> `))}</p>`
}
${
  properties.length === 0
    ? ""
    : html`<table><thead><tr><th>Field</th><th>Type</th><th></th></tr></thead><tbody>
${joined(
  properties.map(
    ([field, each]) =>
      html`<tr><td><code>${field}</code></td><td>${typeName(each)}</td><td>${each.description ?? ""}</td></tr>`,
  ),
)}</tbody></table>`
}`;
}

/** What a person calls a schema, with a link to what it refers to. */
function typeName(schema: Schema): Part {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1) ?? "";
    return html`<a href="#message-${name}">${name}</a>`;
  }
  if (schema.anyOf !== undefined) {
    return joined(schema.anyOf.map((each, index) => html`${index === 0 ? "" : " or "}${typeName(each)}`));
  }
  if (schema.items !== undefined) {
    return html`list of ${typeName(schema.items)}`;
  }
  if (typeof schema.additionalProperties === "object") {
    return html`map of ${typeName(schema.additionalProperties)}`;
  }
  const base = schema.contentMediaType === undefined ? [schema.type ?? "anything"].flat().join(" or ") : "bytes";
  const form = schema.format ?? schema.contentEncoding;
  return form === undefined ? base : `${base} (${form})`;
}

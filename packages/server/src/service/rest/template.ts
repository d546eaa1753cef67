/**
 * A path template of `google.api.http`, in the parts that the contract uses:
 *
 *     /v1/codebases/{codebase_id}/files/{file_path=**}
 *
 * | segment     | matches                                                                  |
 * | `word`      | itself                                                                   |
 * | `{field}`   | one segment; an empty one too, so that the method can say the id is missing |
 * | `{field=**}` | all that is left, slashes included, at least an empty segment; last only |
 */
export type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "one"; readonly field: string }
  | { readonly kind: "rest"; readonly field: string };

const FIELD = /^\{([a-z][a-z0-9_.]*)(=\*\*|=\*)?\}$/;
const LITERAL = /^[A-Za-z0-9._~-]+$/;

export function parseTemplate(template: string): readonly Segment[] {
  if (!template.startsWith("/")) {
    throw new Error(`${template} does not begin with a slash`);
  }
  const texts = template.slice(1).split("/");
  return texts.map((text, index) => {
    const field = FIELD.exec(text);
    if (field?.[1] !== undefined) {
      if (field[2] !== "=**") {
        return { kind: "one", field: field[1] };
      }
      if (index !== texts.length - 1) {
        throw new Error(`${template}: ** must be the last segment`);
      }
      return { kind: "rest", field: field[1] };
    }
    if (!LITERAL.test(text)) {
      throw new Error(`${template}: the segment ${text} is not supported`);
    }
    return { kind: "literal", text };
  });
}

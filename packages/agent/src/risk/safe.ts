import { declaredNames, GIVEN } from "./declarations.ts";
import { type Findings, rule } from "./findings.ts";
import { nameOf as javaScriptName } from "./javascript/bindings.ts";
import { nameOf as pythonName } from "./python/bindings.ts";
import type { SyntaxNode } from "./syntax/node.ts";

// What code may be made of and still be SAFE. Whatever is not listed here is at least LOW. There are no imports, no
// classes, and no attributes but some of literals: so nothing is reached that has not been written down here.

interface SafeCode {
  readonly nodes: ReadonlySet<string>;
  /** The names of the language itself. All other names of its own stay what they are, whoever binds them elsewhere. */
  readonly names: ReadonlySet<string>;
  readonly isForeign: (name: string) => boolean;
  readonly nameOf: (node: SyntaxNode) => string;
  /** The nodes that take an attribute, with the part that says of what. */
  readonly access: Readonly<Record<string, string>>;
  readonly attributes: ReadonlySet<string>;
}

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

const PYTHON: SafeCode = {
  nodes: words(`
    module block expression_statement comment line_continuation identifier integer float string concatenated_string
    string_start string_content string_end escape_sequence escape_interpolation interpolation type_conversion
    format_specifier true false none list tuple set dictionary pair parenthesized_expression list_splat
    expression_list list_comprehension set_comprehension dictionary_comprehension generator_expression for_in_clause
    if_clause binary_operator unary_operator not_operator boolean_operator comparison_operator conditional_expression
    named_expression lambda lambda_parameters call argument_list keyword_argument attribute subscript slice yield
    assignment augmented_assignment pattern_list tuple_pattern list_splat_pattern return_statement pass_statement
    break_statement continue_statement raise_statement assert_statement if_statement elif_clause else_clause
    for_statement while_statement try_statement except_clause finally_clause as_pattern as_pattern_target
    function_definition parameters default_parameter typed_parameter typed_default_parameter type generic_type
    type_parameter`),
  names: words(`
    abs all any ascii bin bool chr dict divmod enumerate filter float frozenset hex int isinstance len list map max min
    next oct ord pow print range repr reversed round set sorted str sum tuple zip __name__
    ArithmeticError AssertionError Exception IndexError KeyError OverflowError RecursionError RuntimeError TypeError
    ValueError ZeroDivisionError`),
  isForeign: (name) => name.startsWith("__") || PYTHON_BUILTINS.has(name),
  nameOf: pythonName,
  access: { attribute: "object" },
  attributes: words("join lower upper title strip split splitlines replace startswith endswith count find index"),
};

const PYTHON_BUILTINS = words(`
  aiter anext breakpoint bytearray bytes callable classmethod compile complex copyright credits delattr dir eval exec exit
  format getattr globals hasattr hash help id input issubclass iter license locals memoryview object open property quit
  setattr slice staticmethod super type vars BaseException`);

const JAVASCRIPT: SafeCode = {
  nodes: words(`
    program comment empty_statement expression_statement statement_block identifier property_identifier number string
    string_fragment escape_sequence template_string template_substitution true false null undefined array object pair
    shorthand_property_identifier spread_element parenthesized_expression binary_expression unary_expression
    update_expression ternary_expression assignment_expression augmented_assignment_expression member_expression
    subscript_expression call_expression arguments arrow_function function_expression function_declaration
    formal_parameters assignment_pattern rest_pattern array_pattern lexical_declaration variable_declarator
    return_statement if_statement else_clause for_statement for_in_statement while_statement do_statement
    break_statement continue_statement switch_statement switch_body switch_case switch_default try_statement catch_clause
    finally_clause throw_statement required_parameter type_annotation predefined_type array_type readonly_type union_type
    type_identifier`),
  names: words("undefined NaN Infinity String Number Boolean BigInt parseInt parseFloat isNaN isFinite Error"),
  isForeign: (name) => name in globalThis || /^(?:require|module|exports|arguments|__filename|__dirname)$/.test(name),
  nameOf: javaScriptName,
  access: { member_expression: "object", subscript_expression: "object" },
  attributes: words(`
    length at concat every filter find flat flatMap forEach includes indexOf join map padEnd padStart reduce repeat slice
    some split startsWith endsWith toLowerCase toUpperCase trim`),
};

/** What declares a name. An assignment by itself declares none in JavaScript. */
const DECLARATION = new RegExp(
  `${GIVEN.source}|^(?:function_(?:definition|declaration|expression)|assignment|named_expression|variable_declarator)$`,
);
const LISTS: Readonly<Record<string, SafeCode>> = { python: PYTHON, javascript: JAVASCRIPT, typescript: JAVASCRIPT };
const CONSOLE = /^console\.(?:log|error)$/;
const LITERAL = /^(?:string|concatenated_string|template_string|array|list|tuple|dictionary|integer|float|number)$/;

/** Finds what is not listed. Nothing of a shell is: it never runs outside of a sandbox. */
export function checkSafe(root: SyntaxNode, language: string, findings: Findings): void {
  const safe = LISTS[language];
  const unlisted = (what: string, node: SyntaxNode): void =>
    findings.add(
      rule("LOW", "unlisted", `uses ${what.split("\n")[0]!.slice(0, 96)}, which is not known to be harmless`),
      node.line,
    );
  if (safe === undefined) {
    if (root.text.trim() !== "") unlisted("a shell", root);
    return;
  }
  const own = declaredNames(root, safe.nameOf, DECLARATION);
  for (const node of root.all()) {
    if (!node.isNamed || node.isError) continue;
    if (node.parent !== undefined && !safe.nodes.has(node.parent.type)) continue;
    if (!safe.nodes.has(node.type)) unlisted(node.text, node);
    else if (/^(?:shorthand_property_)?identifier$/.test(node.type)) {
      const name = safe.nameOf(node);
      const isLabel = node.field === "attribute" || (node.field === "name" && node.parent?.type === "keyword_argument");
      const isConsole = name === "console" && CONSOLE.test(node.parent?.text ?? "");
      if (!isLabel && !isConsole && !safe.names.has(name) && (safe.isForeign(name) || !own.has(name)))
        unlisted(name, node);
    } else if (Object.hasOwn(safe.access, node.type) && !isSafeAccess(node, safe)) unlisted(node.text, node);
    else if (
      /^(?:string_content|string_fragment|property_identifier)$/.test(node.type) &&
      safe.nameOf(node).includes("__")
    )
      unlisted("the name of an inner attribute", node);
  }
}

/** An attribute of a literal that is listed; `console.log`; `list[0]`. Other keys could be names of attributes. */
function isSafeAccess(node: SyntaxNode, safe: SafeCode): boolean {
  const name = node.part("attribute") ?? node.part("property");
  if (name === undefined) return node.part("index")?.type === "number";
  if (CONSOLE.test(node.text) && node.field === "function") return true;
  return LITERAL.test(node.part(safe.access[node.type]!)?.type ?? "") && safe.attributes.has(safe.nameOf(name));
}

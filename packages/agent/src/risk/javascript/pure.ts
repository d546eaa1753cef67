/**
 * What JavaScript code may use and still be SAFE: allow lists. Whatever is not named here is at least LOW.
 * A name belongs here only if no argument makes it touch files, processes, the network, the environment, or hand out
 * a function that makes code from text.
 */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

export const PURE_GLOBALS = words(`
  undefined NaN Infinity Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error
  AggregateError EvalError Float32Array Float64Array Int8Array Int16Array Int32Array Uint8Array Uint8ClampedArray Uint16Array
  Uint32Array Intl JSON Map Math Number Promise RangeError ReferenceError RegExp Set String Symbol SyntaxError TypeError
  URIError URL URLSearchParams TextEncoder TextDecoder WeakMap WeakRef WeakSet Object console performance
  decodeURI decodeURIComponent encodeURI encodeURIComponent isFinite isNaN parseFloat parseInt structuredClone
  queueMicrotask setTimeout setInterval setImmediate clearTimeout clearInterval clearImmediate atob btoa
  Iterator arguments
`);

/** Globals with members that are not pure → their pure members. Handed around as values they are LOW. */
export const PURE_MEMBERS: Readonly<Record<string, ReadonlySet<string>>> = {
  Object: words("keys values entries assign freeze isFrozen seal isSealed fromEntries groupBy hasOwn is create"),
  console: words(`log error warn info debug table group groupEnd groupCollapsed time timeEnd timeLog assert count
    countReset dir trace`),
  performance: words("now timeOrigin mark measure"),
  Error: words("isError"),
};

/** Module → its pure members. */
export const PURE_MODULES: Readonly<Record<string, ReadonlySet<string>>> = {
  "assert:": words(`default ok equal notEqual strictEqual notStrictEqual deepEqual notDeepEqual deepStrictEqual
    notDeepStrictEqual throws doesNotThrow rejects doesNotReject match doesNotMatch fail strict AssertionError`),
  "assert/strict:": words(`default ok equal notEqual strictEqual deepEqual deepStrictEqual throws doesNotThrow rejects
    match doesNotMatch fail`),
  "path:": words(
    "default join resolve basename dirname extname relative normalize parse format sep delimiter isAbsolute posix",
  ),
  "util:": words("inspect format isDeepStrictEqual types stripVTControlCharacters styleText"),
};

/** Members that are pure on every object SAFE code can hold. Its own members come on top. */
export const PURE_PROPERTIES = words(`
  length at charAt charCodeAt codePointAt concat endsWith includes indexOf lastIndexOf localeCompare match matchAll
  normalize padEnd padStart repeat replace replaceAll search slice split startsWith substring substr toLowerCase
  toUpperCase toLocaleLowerCase toLocaleUpperCase toString trim trimEnd trimStart valueOf raw isWellFormed
  copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach from isArray join keys
  map of pop push reduce reduceRight reverse shift some sort splice toReversed toSorted toSpliced unshift values with
  add clear delete get has set size union intersection difference symmetricDifference isSubsetOf isSupersetOf
  isDisjointFrom groupBy take drop toArray
  then catch finally all allSettled any race resolve reject withResolvers
  next return throw done value
  message name stack cause errors code
  toFixed toPrecision toExponential toLocaleString isInteger isFinite isNaN isSafeInteger parseFloat parseInt EPSILON
  MAX_SAFE_INTEGER MIN_SAFE_INTEGER MAX_VALUE MIN_VALUE POSITIVE_INFINITY NEGATIVE_INFINITY asIntN asUintN
  abs acos acosh asin asinh atan atan2 atanh cbrt ceil clz32 cos cosh exp expm1 floor fround hypot imul log log10 log1p
  log2 max min pow random round sign sin sinh sqrt tan tanh trunc E LN10 LN2 LOG10E LOG2E PI SQRT1_2 SQRT2
  parse stringify
  getDate getDay getFullYear getHours getMilliseconds getMinutes getMonth getSeconds getTime getTimezoneOffset
  getUTCDate getUTCDay getUTCFullYear getUTCHours getUTCMinutes getUTCMonth getUTCSeconds now setDate setFullYear setHours
  setMilliseconds setMinutes setMonth setSeconds setTime setUTCDate setUTCFullYear setUTCHours setUTCMinutes setUTCMonth
  toDateString toISOString toJSON toLocaleDateString toLocaleTimeString toTimeString toUTCString UTC
  exec test flags global ignoreCase index input groups lastIndex multiline source sticky unicode indices
  iterator asyncIterator hasInstance toPrimitive toStringTag description
  format formatToParts resolvedOptions NumberFormat DateTimeFormat Collator PluralRules RelativeTimeFormat Segmenter
  segment select compare
  searchParams hostname host protocol pathname hash port origin href search username password append getAll canParse
  buffer byteLength byteOffset subarray getInt8 getUint8 getInt16 getUint16 getInt32 getUint32 getFloat32 getFloat64
  setInt8 setUint8 setInt16 setUint16 setInt32 setUint32 setFloat32 setFloat64 encode decode
  call apply bind fromCharCode fromCodePoint deref for unref ref
`);

/** Never pure as a member, also when the code has a member of its own of that name. */
export const NEVER_PURE = words(`
  constructor __proto__ prototype caller callee mainModule require process global globalThis module exports binding env
  execSync spawn spawnSync fork eval Function getBuiltinModule dlopen _load _compile createRequire
  prepareStackTrace getThis getFunction __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__
  getPrototypeOf setPrototypeOf getOwnPropertyDescriptor getOwnPropertyDescriptors
`);

/** The kinds of nodes that SAFE code is made of. */
export const PURE_NODES = words(`
  program comment hash_bang_line empty_statement expression_statement statement_block
  identifier property_identifier private_property_identifier shorthand_property_identifier
  shorthand_property_identifier_pattern statement_identifier
  number string string_fragment escape_sequence template_string template_substitution regex regex_pattern regex_flags
  true false null undefined array object pair spread_element computed_property_name
  parenthesized_expression sequence_expression binary_expression unary_expression update_expression ternary_expression
  assignment_expression augmented_assignment_expression member_expression subscript_expression optional_chain
  call_expression arguments new_expression await_expression yield_expression
  arrow_function function_expression function_declaration generator_function generator_function_declaration
  formal_parameters rest_pattern object_pattern array_pattern assignment_pattern object_assignment_pattern pair_pattern
  lexical_declaration variable_declaration variable_declarator
  if_statement else_clause for_statement for_in_statement while_statement do_statement switch_statement switch_body
  switch_case switch_default try_statement catch_clause finally_clause throw_statement return_statement break_statement
  continue_statement labeled_statement
  class class_declaration class_body class_heritage method_definition field_definition class_static_block super this
  import_statement import_clause named_imports import_specifier namespace_import export_statement export_clause
  export_specifier
  type_annotation type_identifier predefined_type generic_type type_arguments type_parameters type_parameter array_type
  union_type intersection_type tuple_type function_type object_type property_signature method_signature literal_type
  parenthesized_type readonly_type optional_type rest_type index_signature interface_declaration interface_body
  type_alias_declaration as_expression satisfies_expression non_null_expression required_parameter optional_parameter
  public_field_definition accessibility_modifier extends_clause extends_type_clause implements_clause constraint
  type_predicate type_predicate_annotation asserts asserts_annotation index_type_query lookup_type conditional_type
  mapped_type_clause override_modifier nested_type_identifier
`);

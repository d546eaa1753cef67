/**
 * What Python code may use and still be SAFE: allow lists. Whatever is not named here is at least LOW.
 * A name belongs here only if no argument makes it touch files, processes, the network, the environment, or hand out
 * an object (a module, a frame, a file) that does.
 */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

export const PURE_BUILTINS = words(`
  abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter
  float format frozenset hash hex id int isinstance issubclass iter len list map max min next object oct ord pow print
  property range repr reversed round set slice sorted staticmethod str sum super tuple type zip
  True False None NotImplemented Ellipsis __name__ __debug__
  ArithmeticError AssertionError AttributeError BaseException BlockingIOError BufferError EOFError Exception
  FileExistsError FileNotFoundError FloatingPointError GeneratorExit ImportError IndexError IndentationError
  IOError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError
  OverflowError PermissionError RecursionError ReferenceError RuntimeError RuntimeWarning StopAsyncIteration
  StopIteration SyntaxError SystemExit TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError
  UnicodeError UserWarning ValueError Warning ZeroDivisionError ExceptionGroup BaseExceptionGroup
`);

/** Module → its pure names. `import m` alone is SAFE for these. */
export const PURE_MODULES: Readonly<Record<string, ReadonlySet<string>>> = {
  __future__: words("annotations division print_function absolute_import unicode_literals generator_stop"),
  math: words(`acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
    expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma
    log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau trunc
    ulp`),
  cmath: words("exp log phase polar rect sqrt pi e"),
  json: words("dumps loads JSONDecodeError"),
  statistics: words(`mean fmean geometric_mean harmonic_mean median median_low median_high mode multimode pstdev
    pvariance stdev variance quantiles correlation covariance linear_regression NormalDist StatisticsError`),
  collections: words("Counter OrderedDict defaultdict deque namedtuple ChainMap"),
  "collections.abc": words(`Callable Iterable Iterator Generator Mapping MutableMapping Sequence MutableSequence Set
    MutableSet Hashable Sized Container Collection Awaitable Coroutine AsyncIterator AsyncIterable`),
  itertools: words(`accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
    filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest`),
  functools: words("cache cached_property cmp_to_key lru_cache partial reduce total_ordering wraps"),
  operator: words(`add sub mul truediv floordiv mod pow neg pos abs and_ or_ xor not_ eq ne lt le gt ge itemgetter
    contains concat`),
  string: words(`ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation
    whitespace capwords`),
  re: words(`compile match fullmatch search findall finditer sub subn split escape IGNORECASE MULTILINE DOTALL VERBOSE
    ASCII UNICODE I M S X A U Pattern Match error`),
  datetime: words("date datetime time timedelta timezone tzinfo UTC MINYEAR MAXYEAR"),
  time: words(`time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time sleep strftime strptime
    gmtime localtime mktime struct_time`),
  calendar: words("monthrange isleap leapdays weekday month_name month_abbr day_name day_abbr timegm monthcalendar"),
  random: words(`random randint randrange choice choices sample shuffle uniform gauss seed getrandbits triangular
    betavariate expovariate normalvariate Random`),
  bisect: words("bisect bisect_left bisect_right insort insort_left insort_right"),
  heapq: words("heapify heappush heappop heappushpop heapreplace merge nlargest nsmallest"),
  copy: words("copy deepcopy"),
  enum: words("Enum IntEnum StrEnum Flag IntFlag auto unique"),
  dataclasses: words("dataclass field asdict astuple replace fields"),
  typing: words(`Any Callable ClassVar Dict Final FrozenSet Generic Iterable Iterator Generator List Literal Mapping
    NamedTuple NoReturn Optional Protocol Sequence Set Self Tuple Type TypeAlias TypeVar TypedDict Union overload
    Awaitable Coroutine AsyncIterator Annotated ParamSpec cast TYPE_CHECKING final Never override`),
  abc: words("ABC abstractmethod"),
  decimal: words("Decimal ROUND_HALF_UP ROUND_HALF_EVEN ROUND_DOWN ROUND_UP getcontext InvalidOperation"),
  fractions: words("Fraction"),
  numbers: words("Number Real Integral Rational Complex"),
  textwrap: words("wrap fill dedent indent shorten"),
  pprint: words("pprint pformat pp"),
  hashlib: words("md5 sha1 sha224 sha256 sha384 sha512 sha3_256 sha3_512 blake2b blake2s"),
  hmac: words("new compare_digest"),
  base64: words("b64encode b64decode urlsafe_b64encode urlsafe_b64decode b32encode b32decode b16encode b16decode"),
  binascii: words("hexlify unhexlify crc32"),
  zlib: words("compress decompress crc32 adler32"),
  struct: words("pack unpack calcsize"),
  html: words("escape unescape"),
  io: words("StringIO BytesIO"),
  csv: words("reader writer DictReader DictWriter QUOTE_ALL QUOTE_MINIMAL QUOTE_NONNUMERIC"),
  contextlib: words("contextmanager suppress nullcontext closing"),
  uuid: words("uuid4 uuid5 UUID NAMESPACE_DNS NAMESPACE_URL"),
  secrets: words("token_hex token_bytes token_urlsafe choice randbelow"),
  unicodedata: words("normalize category name lookup"),
  difflib: words("unified_diff ndiff SequenceMatcher get_close_matches"),
  colorsys: words("rgb_to_hsv hsv_to_rgb rgb_to_hls hls_to_rgb"),
  sys: words(
    "exit maxsize version version_info getsizeof stdout stderr setrecursionlimit getrecursionlimit float_info",
  ),
};

/** Attributes of values that are pure on every object SAFE code can hold. Its own attributes come on top. */
export const PURE_ATTRIBUTES = words(`
  capitalize casefold center count decode encode endswith expandtabs find index isalnum isalpha isascii isdecimal
  isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip maketrans partition
  removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip
  swapcase title translate upper zfill hex fromhex
  append clear copy extend insert pop remove reverse sort
  fromkeys get items keys popitem setdefault update values move_to_end most_common elements subtract total
  add difference difference_update discard intersection intersection_update isdisjoint issubset issuperset
  symmetric_difference symmetric_difference_update union
  appendleft extendleft popleft rotate maxlen
  bit_length bit_count as_integer_ratio is_integer conjugate real imag numerator denominator to_bytes from_bytes
  limit_denominator quantize to_integral_value
  date time year month day hour minute second microsecond tzinfo isoformat isocalendar isoweekday weekday strftime
  strptime timestamp fromtimestamp utcfromtimestamp fromisoformat fromordinal toordinal timedelta total_seconds days
  seconds microseconds now today utcnow combine astimezone utcoffset min max resolution utc timetuple tm_year tm_mon
  tm_mday tm_hour tm_min tm_sec
  group groups groupdict start end span string re pattern flags lastindex match fullmatch search findall finditer sub
  subn expand
  send throw close
  args value name errno code with_traceback add_note exceptions reason
  getvalue read readline readlines write writelines writerow writerows writeheader seek tell flush fieldnames line_num
  hexdigest digest digest_size block_size
  random randint randrange choice choices sample shuffle uniform gauss seed
  setter getter deleter cache_info cache_clear from_iterable
  _asdict _replace _fields _make member names
  mean stdev variance median slope intercept prec rounding major micro minor
  ratio get_matching_blocks get_opcodes int bytes version variant
`);

/** Methods with two underscores that SAFE classes may define, and call on super(). */
export const PURE_DUNDERS = words(`
  __init__ __repr__ __str__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __len__ __iter__ __next__
  __contains__ __getitem__ __setitem__ __delitem__ __call__ __enter__ __exit__ __add__ __sub__ __mul__ __truediv__
  __floordiv__ __mod__ __pow__ __neg__ __pos__ __abs__ __invert__ __and__ __or__ __xor__ __lshift__ __rshift__ __radd__
  __rsub__ __rmul__ __rtruediv__ __iadd__ __isub__ __imul__ __matmul__ __int__ __float__ __index__ __round__
  __post_init__ __format__ __reversed__ __slots__ __doc__ __version__ __author__ __all__ __name__ __qualname__ __new__
  __missing__ __aiter__ __anext__ __aenter__ __aexit__ __copy__ __deepcopy__ __bytes__ __divmod__ __await__
`);

/** Never pure as an attribute, also when the code has an attribute of its own of that name: they unwrap files. */
export const NEVER_PURE = words(
  "buffer raw detach reconfigure fileno open loader modules system popen codecs os sys register mro",
);

/** The kinds of nodes that SAFE code is made of. */
export const PURE_NODES = words(`
  module block expression_statement comment line_continuation
  identifier integer float string concatenated_string string_start string_content string_end escape_sequence
  escape_interpolation interpolation type_conversion format_specifier format_expression true false none ellipsis
  list tuple set dictionary pair parenthesized_expression list_splat dictionary_splat expression_list
  list_comprehension set_comprehension dictionary_comprehension generator_expression for_in_clause if_clause
  binary_operator unary_operator not_operator boolean_operator comparison_operator conditional_expression
  named_expression lambda lambda_parameters call argument_list keyword_argument attribute subscript slice await yield
  assignment augmented_assignment pattern_list tuple_pattern list_pattern list_splat_pattern dictionary_splat_pattern
  return_statement pass_statement break_statement continue_statement raise_statement assert_statement delete_statement
  global_statement nonlocal_statement if_statement elif_clause else_clause for_statement while_statement
  try_statement except_clause finally_clause with_statement with_clause with_item as_pattern as_pattern_target
  function_definition parameters default_parameter typed_parameter typed_default_parameter keyword_separator
  positional_separator class_definition decorated_definition decorator type generic_type union_type type_parameter
  member_type
  import_statement import_from_statement future_import_statement aliased_import dotted_name
  match_statement case_clause case_pattern union_pattern class_pattern keyword_pattern splat_pattern dict_pattern
`);

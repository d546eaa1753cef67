import type { DescExtension, DescFile, DescMessage, DescService } from "@bufbuild/protobuf";

/** Finds the file that defines something, for reflection. */
export class DescriptorIndex {
  readonly services: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #extensions = new Map<string, Map<number, DescFile>>();

  constructor(services: readonly DescService[]) {
    this.services = services.map((service) => service.typeName).toSorted();
    for (const service of services) this.#addFile(service.file);
  }

  /** The file itself first, then all it imports, directly or not. */
  fileNamed(name: string): readonly DescFile[] | undefined {
    return withDependencies(this.#files.get(name));
  }

  fileWithSymbol(symbol: string): readonly DescFile[] | undefined {
    return withDependencies(this.#symbols.get(symbol));
  }

  fileWithExtension(typeName: string, number: number): readonly DescFile[] | undefined {
    return withDependencies(this.#extensions.get(typeName)?.get(number));
  }

  /** Undefined when the type is unknown. */
  extensionsOf(typeName: string): readonly number[] | undefined {
    if (!this.#symbols.has(typeName)) return undefined;
    return [...(this.#extensions.get(typeName)?.keys() ?? [])].toSorted((a, b) => a - b);
  }

  #addFile(file: DescFile): void {
    const name = fileName(file);
    if (this.#files.has(name)) return;
    this.#files.set(name, file);
    for (const each of file.enums) this.#symbols.set(each.typeName, file);
    for (const each of file.messages) this.#addMessage(each, file);
    for (const each of file.extensions) this.#addExtension(each, file);
    for (const service of file.services) {
      this.#symbols.set(service.typeName, file);
      for (const method of service.methods) this.#symbols.set(`${service.typeName}.${method.name}`, file);
    }
    for (const each of file.dependencies) this.#addFile(each);
  }

  #addMessage(message: DescMessage, file: DescFile): void {
    this.#symbols.set(message.typeName, file);
    for (const field of message.fields) this.#symbols.set(`${message.typeName}.${field.name}`, file);
    for (const oneof of message.oneofs) this.#symbols.set(`${message.typeName}.${oneof.name}`, file);
    for (const each of message.nestedEnums) this.#symbols.set(each.typeName, file);
    for (const each of message.nestedMessages) this.#addMessage(each, file);
    for (const each of message.nestedExtensions) this.#addExtension(each, file);
  }

  #addExtension(extension: DescExtension, file: DescFile): void {
    this.#symbols.set(extension.typeName, file);
    const numbers = this.#extensions.get(extension.extendee.typeName) ?? new Map<number, DescFile>();
    numbers.set(extension.number, file);
    this.#extensions.set(extension.extendee.typeName, numbers);
  }
}

/** With its ending, which descriptors leave out. */
function fileName(file: DescFile): string {
  return `${file.name}.proto`;
}

function withDependencies(file: DescFile | undefined): readonly DescFile[] | undefined {
  if (file === undefined) return undefined;
  const files = new Set<DescFile>([file]);
  // A set that grows is walked to its end.
  for (const each of files) for (const dependency of each.dependencies) files.add(dependency);
  return [...files];
}

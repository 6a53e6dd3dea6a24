/** What the runtime has and @types/node does not declare without the DOM library. */
declare namespace WebAssembly {
  type ImportValue = ExportValue | number;
  type ModuleImports = Record<string, ImportValue>;
  type Imports = Record<string, ModuleImports>;
  // biome-ignore lint/complexity/noBannedTypes: an export is a function of any signature
  type ExportValue = Function | Memory | Global | Table;
  type Exports = Record<string, ExportValue>;
  class Module {
    constructor(bytes: Uint8Array);
    static imports(module: Module): Array<{ module: string; name: string; kind: string }>;
    static exports(module: Module): Array<{ name: string; kind: string }>;
    static customSections(module: Module, name: string): ArrayBuffer[];
  }
  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Exports;
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class Global {
    value: unknown;
  }
  class Table {
    readonly length: number;
    get(index: number): unknown;
  }
  class CompileError extends Error {}
  class RuntimeError extends Error {}
  function compile(bytes: Uint8Array): Promise<Module>;
  function validate(bytes: Uint8Array): boolean;
}

interface Buffer {
  latin1Slice(start?: number, end?: number): string;
  utf8Slice(start?: number, end?: number): string;
}

/** Source text of numbers (TC39 "JSON.parse source text access", in V8 since 11.4). */
interface JSON {
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): { readonly rawJSON: string };
  isRawJSON(value: unknown): boolean;
}

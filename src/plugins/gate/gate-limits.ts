const MIB = 1024 * 1024;

/** Limits of the gate (docs/SECURITY.md). */
export const GATE = {
  types: 10_000,
  params: 1000,
  typeValues: 100_000,
  tags: 1000,
  imports: 1000,
  functions: 100_000,
  tables: 4,
  tableEntries: 100_000,
  globals: 10_000,
  exports: 10_000,
  customSections: 10_000,
  elementSegments: 10_000,
  elements: 200_000,
  dataSegments: 100_000,
  bodyBytes: 4 * MIB,
  locals: 10_000,
  nesting: 10_000,
  tableLabels: 65_520,
  /** Cost of the baseline compiler for one function and for the module, as estimated by plugins/gate/compile-cost. */
  compileFunctionBytes: 96 * MIB,
  compileFunctionMs: 250,
  compileModuleMs: 1000,
  /** Cost of the optimizing compiler; more expensive functions are left to the baseline compiler. */
  optimizeFunctionMs: 200,
  optimizeModuleMs: 1000,
} as const;

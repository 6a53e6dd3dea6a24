import path from 'node:path';
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';

/** A function with a body, named by what it stands in, and its length in lines. */
type FunctionOutline = { name: string; lines: number };

/** What a source file exports at its top level, errors apart, and every function in it. */
export type SourceOutline = {
  classes: string[];
  functions: string[];
  types: string[];
  all: FunctionOutline[];
};

const FUNCTIONS = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);
const NAMING = new Set([
  ...FUNCTIONS,
  SyntaxKind.VariableDeclaration,
  SyntaxKind.ClassDeclaration,
  SyntaxKind.PropertyAssignment,
]);

/** The nodes of the compiler have members that depend on their kind; these are read here. */
type AnyNode = Node & {
  name?: Node;
  modifiers?: readonly Node[];
  declarationList?: { declarations: readonly AnyNode[] };
  initializer?: Node;
  heritageClauses?: readonly Node[];
};

/**
 * Reads source files with the compiler's own parser.
 *
 * @param root directory of the package
 * @param files paths relative to the root
 */
export function outlineSources(root: string, files: readonly string[]): Map<string, SourceOutline> {
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProject: path.join(root, 'tsconfig.json') }).getProjects()[0];
    const out = new Map<string, SourceOutline>();
    for (const file of files) {
      const source = project?.program.getSourceFile(path.join(root, file));
      if (source === undefined) throw new Error(`${file} is not part of tsconfig.json`);
      out.set(file, outlineOf(source, source.text));
    }
    return out;
  } finally {
    api.close();
  }
}

function outlineOf(source: Node, text: string): SourceOutline {
  const out: SourceOutline = { classes: [], functions: [], types: [], all: [] };
  const nameOf = (node: AnyNode): string =>
    node.name === undefined ? '' : text.slice(node.name.pos, node.name.end).trim();
  const codeOf = (node: Node): string => text.slice(node.pos, node.end);
  const walk = (node: AnyNode, names: readonly string[]): void => {
    const name = NAMING.has(node.kind) ? nameOf(node) : '';
    const within = name === '' ? names : [...names, name];
    if (FUNCTIONS.has(node.kind)) {
      // A node begins with the blank and the comments before it.
      const code = codeOf(node).replace(/^(\s|\/\/.*\n|\/\*[\s\S]*?\*\/)+/, '');
      out.all.push({ name: within.join('.') || 'default', lines: code.split('\n').length });
    }
    node.forEachChild(child => walk(child as AnyNode, within));
  };
  walk(source as AnyNode, []);
  source.forEachChild(child => {
    const node = child as AnyNode;
    if (!node.modifiers?.some(m => m.kind === SyntaxKind.ExportKeyword)) return;
    if (node.kind === SyntaxKind.FunctionDeclaration) out.functions.push(nameOf(node));
    else if (node.kind === SyntaxKind.ClassDeclaration) {
      if (!node.heritageClauses?.some(h => codeOf(h).includes('Error'))) out.classes.push(nameOf(node));
    } else if (node.kind === SyntaxKind.TypeAliasDeclaration) out.types.push(nameOf(node));
    else
      for (const d of node.declarationList?.declarations ?? [])
        if (d.initializer !== undefined && FUNCTIONS.has(d.initializer.kind)) out.functions.push(nameOf(d));
  });
  return out;
}

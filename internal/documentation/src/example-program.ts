import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { type FencedBlock, fencedBlocks } from './fenced-blocks.ts';
import type { MarkdownPage } from './markdown-pages.ts';

/** Blocks of one page that belong together: the first, and those below it that continue it. */
export interface ExampleProgram {
  /** `README.md:80`, where its first line of code stands. */
  readonly place: string;
  /** TypeScript, each line on the line that it has in the page. */
  readonly source: string;
  /** `gpu` needs WebGPU, `never` is only compiled. */
  readonly runs: 'anywhere' | 'gpu' | 'never';
  /** Why it is only compiled. */
  readonly reason: string | undefined;
}

const LANGUAGES = ['ts', 'js', 'typescript', 'javascript', 'mjs'];

/**
 * What pages take for granted: `given/packages/adapter-kit.ts` for `packages/adapter-kit/README.md`. Files that examples import by
 * `./` lie in the folder of that name beside it.
 */
const givenFolder = fileURLToPath(new URL('./given/', import.meta.url));

/**
 * The programs of a page. A block is one by itself, unless `<!-- example: continues -->` stands above it. `gpu` there needs WebGPU,
 * `not run, REASON` is only compiled.
 *
 * @throws {Error} when a mark says something else, or there is nothing to continue
 */
export function examplePrograms(page: MarkdownPage): ExampleProgram[] {
  const blocks = fencedBlocks(page.text).filter(({ language }) => LANGUAGES.includes(language));
  const chains: FencedBlock[][] = [];
  for (const block of blocks) {
    if (block.mark !== 'continues') chains.push([block]);
    else if (chains.length === 0) throw new Error(`${page.path}:${block.line} continues nothing.`);
    else chains[chains.length - 1].push(block);
  }
  return chains.map((chain) => {
    const [{ line, mark }] = chain;
    const reason = /^not run, (.+)$/.exec(mark)?.[1];
    if (mark !== '' && mark !== 'gpu' && reason === undefined) {
      throw new Error(`${page.path}:${line} is marked "${mark}": say "continues", "gpu", or "not run, REASON".`);
    }
    const runs = mark === 'gpu' ? 'gpu' : reason === undefined ? 'anywhere' : 'never';
    return { place: `${page.path}:${line}`, source: sourceOf(page.path, chain), runs, reason };
  });
}

/** Line 1 of a page is never code, so what is given stands there. */
function sourceOf(path: string, chain: readonly FencedBlock[]): string {
  const lines: string[] = [];
  for (const { line, code } of chain) {
    while (lines.length < line - 1) lines.push('');
    lines.push(...code.split('\n'));
  }
  lines[0] = givenImport(path, lines.join('\n'));
  const beside = JSON.stringify(`${givenFor(path).replace(/\.ts$/, '')}/`).slice(1, -1);
  return `${lines.join('\n').replaceAll(/(?<=from ')\.\//g, beside)}\n\nexport {};\n`;
}

function givenFor(path: string): string {
  return join(
    givenFolder,
    `${path
      .replace(/\.md$/, '')
      .replace(/\/README$/, '')
      .toLowerCase()}.ts`,
  );
}

/** An import of everything that is given, mentioned in the code and not declared there. */
function givenImport(path: string, code: string): string {
  const file = givenFor(path);
  if (!existsSync(file)) return '';
  const own = topLevelNames(ts.createSourceFile('code.ts', code, ts.ScriptTarget.Latest, true));
  const offered = topLevelNames(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true), 'exported');
  const names = [...offered].filter(
    (each) => !own.has(each) && new RegExp(`(?<![\\w.'])${each}(?![\\w'])|\\.\\.\\.${each}\\b`).test(code),
  );
  return names.length === 0 ? '' : `import { ${names.join(', ')} } from ${JSON.stringify(file)};`;
}

function topLevelNames(file: ts.SourceFile, which: 'all' | 'exported' = 'all'): Set<string> {
  const names = new Set<string>();
  const add = (name: ts.BindingName): void => {
    if (ts.isIdentifier(name)) names.add(name.text);
    else for (const element of name.elements) if (ts.isBindingElement(element)) add(element.name);
  };
  for (const statement of file.statements) {
    if (ts.isImportDeclaration(statement) && which === 'all') {
      const clause = statement.importClause;
      if (clause?.name !== undefined) names.add(clause.name.text);
      const bindings = clause?.namedBindings;
      if (bindings !== undefined && ts.isNamespaceImport(bindings)) names.add(bindings.name.text);
      if (bindings !== undefined && ts.isNamedImports(bindings)) for (const { name } of bindings.elements) names.add(name.text);
    }
    if (ts.isExportDeclaration(statement) && statement.exportClause !== undefined && ts.isNamedExports(statement.exportClause)) {
      for (const { name } of statement.exportClause.elements) names.add(name.text);
    }
    const exported =
      ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (which === 'exported' && !exported) continue;
    if (ts.isVariableStatement(statement)) for (const { name } of statement.declarationList.declarations) add(name);
    if (
      ts.isFunctionDeclaration(statement) ||
      ts.isClassDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement)
    ) {
      if (statement.name !== undefined) names.add(statement.name.text);
    }
  }
  return names;
}

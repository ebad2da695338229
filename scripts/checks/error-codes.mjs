import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { root, sourceFiles, workspacePackages } from '../run/workspace.mjs';

const PAGE = 'docs/errors.md';

/** @type {import('./all.mjs').Check} */
export const errorCodes = {
  name: 'errors',
  about: `every error code stands in ${PAGE}, and nothing else does`,
  async run() {
    const declared = codesOfPackages(
      workspacePackages().map(({ name, folder }) => ({
        name,
        files: sourceFiles(`${folder}/src`, isShipped).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') })),
      })),
    );
    const problems = differences(declared, codesOfPage(readFileSync(join(root, PAGE), 'utf8')));
    const count = [...declared.values()].reduce((sum, codes) => sum + codes.size, 0);
    return {
      problems: problems.join('\n'),
      note: `${count} codes of errors stand in ${PAGE}`,
      remedy: `give the code a row in its package's section of ${PAGE}, with when and the way out, or remove the row.`,
    };
  },
};

const isShipped = (path) => path.endsWith('.ts') && !/\.(?:test|test-d|bench)\.ts$/.test(path);

/**
 * The codes that packages declare or throw, by package, each with the file that has it. A code that is put together,
 * `resume-${status}`, is `resume-*`.
 *
 * Found are the texts of types named `…Code`, of everything that is typed and called `code`, and what errors are made with
 * whose constructor calls its first parameter `code`.
 *
 * @param {{ name: string, files: { path: string, text: string }[] }[]} packages
 * @returns {Map<string, Map<string, string>>}
 */
export function codesOfPackages(packages) {
  const nodes = packages.flatMap(({ name, files }) =>
    files.map(({ path, text }) => ({
      name,
      path,
      nodes: nodesOf(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)),
    })),
  );
  const codeFirst = new Set(nodes.flatMap((file) => file.nodes.filter(takesCodeFirst).map(({ parent }) => parent.name?.text)));
  const codes = new Map(packages.map(({ name }) => [name, new Map()]));
  for (const file of nodes) {
    for (const code of file.nodes.flatMap((node) => codesAt(node, codeFirst))) {
      if (!codes.get(file.name).has(code)) codes.get(file.name).set(code, file.path);
    }
  }
  return codes;
}

/** A node and everything below it. */
function nodesOf(node, nodes = []) {
  nodes.push(node);
  ts.forEachChild(node, (child) => void nodesOf(child, nodes));
  return nodes;
}

const takesCodeFirst = (node) => ts.isConstructorDeclaration(node) && node.parameters[0]?.name.text === 'code';

function codesAt(node, codeFirst) {
  if (ts.isTypeAliasDeclaration(node)) return node.name.text.endsWith('Code') ? textsOf(node.type) : [];
  if (ts.isParameter(node) || ts.isPropertyDeclaration(node) || ts.isPropertySignature(node)) {
    return node.name.text === 'code' ? textsOf(node.type) : [];
  }
  if (ts.isNewExpression(node)) return codeFirst.has(node.expression.text) ? textsOf(node.arguments?.[0]) : [];
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword) {
    return codeFirst.has(baseOf(node)) ? textsOf(node.arguments[0]) : [];
  }
  return [];
}

/** The class that the class around a node extends. */
function baseOf(node) {
  const around = ts.findAncestor(node, ts.isClassLike);
  return around?.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)?.types[0].expression.text;
}

/** The texts that a type or a value may be; where a part is only known at run time it is `*`. */
function textsOf(node) {
  if (node === undefined) return [];
  if (ts.isUnionTypeNode(node)) return node.types.flatMap(textsOf);
  if (ts.isLiteralTypeNode(node)) return textsOf(node.literal);
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  if (ts.isTemplateExpression(node))
    return [[node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('*')];
  return ts.isStringLiteralLike(node) ? [node.text] : [];
}

/**
 * The codes that a page tells of, by package: what stands in backquotes in the first cell of a row, below the heading that
 * names the package.
 *
 * @param {string} page in Markdown
 * @returns {Map<string, Set<string>>}
 */
export function codesOfPage(page) {
  const codes = new Map();
  for (const section of page.split(/^## /m)) {
    const [, name] = /^(@\S+|bufferwise)\s/.exec(section) ?? [];
    if (name === undefined) continue;
    const cells = [...section.matchAll(/^\|([^|]*)\|/gm)].map(([, cell]) => cell);
    codes.set(name, new Set(cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code))));
  }
  return codes;
}

/**
 * What the sources and the page do not agree about, a sentence each.
 *
 * @param {Map<string, Map<string, string>>} declared as of `codesOfPackages`
 * @param {Map<string, Set<string>>} told as of `codesOfPage`
 */
export function differences(declared, told) {
  const untold = [...declared].flatMap(([name, codes]) =>
    [...codes]
      .filter(([code]) => ![...(told.get(name) ?? [])].some((each) => covers(code, each)))
      .map(([code, path]) => `${path}: \`${code}\` is missing in the section ${name}`),
  );
  const gone = [...told].flatMap(([name, codes]) =>
    [...codes]
      .filter((each) => ![...(declared.get(name)?.keys() ?? [])].some((code) => covers(code, each)))
      .map((each) => `${PAGE}: \`${each}\` stands in the section ${name}, which has no such code`),
  );
  return [...untold, ...gone];
}

/** Whether a code of the sources, `*` for what is only known at run time, is or gives the code that is told. */
const covers = (code, each) => new RegExp(`^${code.split('*').map(escaped).join('[a-z-]+')}$`).test(each);

const escaped = (text) => text.replace(/[^\w-]/g, '\\$&');

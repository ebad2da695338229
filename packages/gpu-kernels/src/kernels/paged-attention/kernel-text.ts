/** Constants of a kernel that stand in its text: sizes of private arrays, which WGSL `override` constants cannot give. */
export type TextConstants = Readonly<Record<string, number | boolean>>;

/**
 * The text of a WGSL module for one set of constants: their declarations (`u32` and `bool`), then the parts, with every loop
 * that is marked `// unroll` written out.
 *
 * A marked loop reads `for (var i = 0u; i < BOUND; i++) { // unroll`, with BOUND a constant. Written out, `i` is a literal. So an
 * array that is indexed by it can live in registers with every compiler, and costs a software device no address arithmetic.
 *
 * @throws {RangeError} when a marked loop is of another form or its bound is no constant
 */
export function kernelText(constants: TextConstants, ...parts: string[]): string {
  const declarations = Object.entries(constants).map(([name, value]) => {
    return `const ${name} = ${typeof value === 'number' ? `${value}u` : value};`;
  });
  return [...declarations, ...parts.map((part) => unroll(part, constants))].join('\n');
}

const MARKED = /^ *for \(.*\/\/ unroll$/m;
const LOOP = /^( *)for \(var (\w+) = 0u; \2 < (\w+); \2\+\+\) \{ \/\/ unroll\n/;

function unroll(text: string, constants: TextConstants): string {
  const marked = MARKED.exec(text);
  if (!marked) return text;
  const before = text.slice(0, marked.index);
  const loop = LOOP.exec(text.slice(marked.index));
  const bound = loop && constants[loop[3]];
  if (!loop || typeof bound !== 'number') throw new RangeError(`cannot unroll: ${marked[0].trim()}`);
  const [header, indent, index] = loop;
  const bodyStart = marked.index + header.length;
  // Lines of the body are indented more deeply than the brace that closes it.
  const bodyEnd = text.indexOf(`\n${indent}}`, bodyStart) + 1;
  const body = text.slice(bodyStart, bodyEnd);
  const name = new RegExp(`\\b${index}\\b`, 'g');
  const copies = Array.from({ length: bound }, (_, i) => `${indent}{\n${body.replace(name, `${i}u`)}${indent}}\n`);
  const after = text.slice(bodyEnd + indent.length + 2);
  return before + unroll(copies.join(''), constants) + unroll(after, constants);
}

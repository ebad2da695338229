import ts from 'typescript';

/** A value that a comment behind an expression states. `partial` when the comment leaves something out with `…`. */
export interface StatedValue {
  readonly value: unknown;
  readonly partial: boolean;
}

/**
 * Makes an example say what its comments say: `staleRange(window, 10, 4); // { begin: 0, end: 1 }` becomes a call that compares.
 * A comment states a value when it begins with one, alone or before a colon; others are left alone.
 *
 * @param name of the function that is called with the value of the expression, the {@link StatedValue} and the line
 * @returns the source with the calls, each on its line, and how many there are
 */
export function withStatedValues(source: string, name: string): { source: string; count: number } {
  const file = ts.createSourceFile('example.ts', source, ts.ScriptTarget.Latest, true);
  const edits: { from: number; to: number; text: string }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isExpressionStatement(node)) {
      const [comment] = ts.getTrailingCommentRanges(source, node.end) ?? [];
      const stated = comment === undefined ? undefined : statedValue(source.slice(comment.pos + 2, comment.end).trim());
      if (stated !== undefined) {
        const { line } = file.getLineAndCharacterOfPosition(node.getStart());
        const { expression } = node;
        const text = `${name}(${expression.getText()}, ${JSON.stringify(stated)}, ${line + 1})`;
        edits.push({ from: expression.getStart(), to: expression.end, text });
        return;
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  let text = source;
  for (const { from, to, text: call } of edits.reverse()) text = text.slice(0, from) + call + text.slice(to);
  return { source: text, count: edits.length };
}

/** The value that a comment begins with, undefined when it begins with words. */
export function statedValue(comment: string): StatedValue | undefined {
  for (const candidate of [comment, ...[...comment.matchAll(/[:;](?= )/g)].map(({ index }) => comment.slice(0, index))]) {
    const partial = candidate.includes('…');
    const value = literal(candidate.replace(/,? …(?=['"\s\]}])/g, ' '));
    if (value !== undefined) return { value: value.value, partial };
  }
  return undefined;
}

function literal(text: string): { value: unknown } | undefined {
  const file = ts.createSourceFile('value.ts', `(${text})`, ts.ScriptTarget.Latest, true);
  const [statement, ...others] = file.statements;
  const broken = (file as unknown as { parseDiagnostics: unknown[] }).parseDiagnostics.length > 0;
  if (broken || others.length > 0 || statement === undefined || !ts.isExpressionStatement(statement)) return undefined;
  return literalValue(statement.expression);
}

function literalValue(node: ts.Expression): { value: unknown } | undefined {
  if (ts.isParenthesizedExpression(node)) return literalValue(node.expression);
  if (ts.isStringLiteral(node)) return { value: node.text };
  if (ts.isNumericLiteral(node)) return { value: Number(node.text.replaceAll('_', '')) };
  if (node.kind === ts.SyntaxKind.TrueKeyword) return { value: true };
  if (node.kind === ts.SyntaxKind.FalseKeyword) return { value: false };
  if (node.kind === ts.SyntaxKind.NullKeyword) return { value: null };
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.MinusToken) {
    const inner = literalValue(node.operand);
    return inner === undefined ? undefined : { value: -Number(inner.value) };
  }
  if (ts.isArrayLiteralExpression(node)) {
    const values = node.elements.map(literalValue);
    return values.includes(undefined) ? undefined : { value: values.map((each) => each?.value) };
  }
  if (ts.isObjectLiteralExpression(node)) {
    const entries = node.properties.map((property) => {
      const inner = ts.isPropertyAssignment(property) ? literalValue(property.initializer) : undefined;
      return inner === undefined ? undefined : [property.name?.getText(), inner.value];
    });
    return entries.includes(undefined) ? undefined : { value: Object.fromEntries(entries as [string, unknown][]) };
  }
  return undefined;
}

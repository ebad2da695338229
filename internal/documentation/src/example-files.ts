import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ExampleProgram, examplePrograms } from './example-program.ts';
import { documentedPages } from './markdown-pages.ts';
import { withStatedValues } from './stated-values.ts';

/** Examples become files here, so that they find what this package depends on. */
const folder = fileURLToPath(new URL('../.cache/', import.meta.url));
const checkStated = fileURLToPath(new URL('./check-stated.ts', import.meta.url));

/** All programs of all pages. */
export const programs: readonly ExampleProgram[] = documentedPages().flatMap(examplePrograms);

/**
 * Writes programs as files, to be compiled or to be run.
 *
 * @param name of the folder, one for each test file: they run at the same time
 * @returns the absolute path of each, and how many comments in it are held to what comes out
 */
export function exampleFiles(
  name: string,
  chosen: readonly ExampleProgram[],
  to: 'compile' | 'run',
): Map<ExampleProgram, { path: string; stated: number }> {
  rmSync(join(folder, name), { recursive: true, force: true });
  return new Map(
    chosen.map((program) => {
      const path = join(folder, name, `${program.place.replaceAll(/[/.:]/g, '-')}.ts`);
      const { source, count } = to === 'run' ? withStatedValues(program.source, '$states') : { source: program.source, count: 0 };
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, count === 0 ? source : withCheck(source, program));
      return [program, { path, stated: count }];
    }),
  );
}

function withCheck(source: string, { place }: ExampleProgram): string {
  const page = place.replace(/:\d+$/, '');
  const check = `const $states = (value, stated, line) => checkStated(value, stated, ${JSON.stringify(page)} + ':' + line);`;
  return `import { checkStated } from ${JSON.stringify(checkStated)}; ${check} ${source}`;
}

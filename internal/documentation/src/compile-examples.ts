import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Compiles all files in one program, as strictly as this package itself, but for what examples declare and never use.
 *
 * @returns for each file what is wrong with it, `line: message`, lines from 1
 */
export function compileExamples(files: readonly string[]): Map<string, string[]> {
  const { config } = ts.parseConfigFileTextToJson('tsconfig.json', readFileSync(join(folder, 'tsconfig.json'), 'utf8'));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
  const program = ts.createProgram([...files], { ...options, noUnusedLocals: false, noUnusedParameters: false });
  return new Map(
    files.map((path) => {
      const file = program.getSourceFile(path);
      if (file === undefined) throw new Error(`${path} is not there.`);
      const found = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
      return [path, found.map((each) => `${lineOf(file, each)}: ${ts.flattenDiagnosticMessageText(each.messageText, '\n')}`)];
    }),
  );
}

function lineOf(file: ts.SourceFile, { start = 0 }: ts.Diagnostic): number {
  return file.getLineAndCharacterOfPosition(start).line + 1;
}

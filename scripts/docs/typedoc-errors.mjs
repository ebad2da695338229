import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Converter } from 'typedoc';
import { codesOfPage } from '../checks/error-codes.mjs';
import { root } from '../run/workspace.mjs';

/** For typedoc: codes of errors in comments lead to their remedies in `docs/errors.md`. */
export function load(app) {
  const codes = new Set(
    [...codesOfPage(readFileSync(join(root, 'docs/errors.md'), 'utf8')).values()].flatMap((each) => [...each]),
  );
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const { comment } of Object.values(project.reflections)) {
      for (const parts of [comment?.summary, ...(comment?.blockTags ?? []).map(({ content }) => content)]) {
        for (const part of parts ?? []) {
          const code = part.kind === 'code' ? part.text.replaceAll('`', '') : '';
          if (codes.has(code)) Object.assign(part, { kind: 'text', text: `[${part.text}](/errors.html#${code})` });
        }
      }
    }
  });
}

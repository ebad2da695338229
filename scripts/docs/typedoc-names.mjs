import { relative, sep } from 'node:path';
import { Converter, ReflectionKind } from 'typedoc';
import { entryPoints } from './entry-points.mjs';

/** For typedoc: calls each module what people import, `@bufferwise/cache-manager/testing` instead of the path of its source. */
export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const packages = app.options.getValue('basePath');
    const names = new Map(entryPoints().map(({ name, file }) => [pathName(packages, file), name]));
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      const name = names.get(module.name);
      if (name === undefined) throw new Error(`Nobody can import the module ${module.name}.`);
      module.name = name;
    }
  });
}

const pathName = (folder, file) =>
  relative(folder, file)
    .split(sep)
    .join('/')
    .replace(/\.ts$/, '')
    .replace(/\/index$/, '');

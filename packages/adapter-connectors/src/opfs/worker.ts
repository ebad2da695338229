/**
 * The script of a dedicated worker in which {@link OpfsPageStore} keeps its pages: to be loaded as a module. It has no exports.
 *
 * @packageDocumentation
 */

import { serveOpfsPages } from './serve-opfs-pages.ts';

serveOpfsPages();

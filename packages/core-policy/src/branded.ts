/**
 * A number (or string) that names one kind of thing. The key of the brand is a string, so two installed copies of this
 * package still agree on the type.
 */
export type Branded<T, Name extends string> = T & { readonly '~brand': Name };

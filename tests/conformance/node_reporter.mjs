// A reporter for `node --test`: one line of JSON for each test that is no suite, with its full name.
export default async function * report (source) {
  const open = new Map() // the names that are open, by file
  for await (const { type, data } of source) {
    const names = open.get(data?.file) ?? []
    if (type === 'test:start') {
      names.length = data.nesting
      names.push(data.name)
      open.set(data.file, names)
    } else if ((type === 'test:pass' || type === 'test:fail') && data.details?.type !== 'suite' &&
               data.skip === undefined && data.todo === undefined) {
      const name = [...names.slice(0, data.nesting), data.name].join(' ')
      yield JSON.stringify({ name, passed: type === 'test:pass', error: String(data.details?.error?.cause ?? '') }) + '\n'
    }
  }
}

// The makers behind make_source, one per kind of data set. Internal to the module.
//
// Ownership, threads, units, failure: as in workload/source.h. Options are validated and a file's path is given where a
// maker needs one.
#pragma once

#include <memory>

#include "workload/source.h"

namespace tokenstone::workload {

using SourceResult = Result<std::unique_ptr<RequestSource>>;
using ContentPtr = std::shared_ptr<const Content>;

SourceResult random_source(const WorkloadOptions& options, ContentPtr content);
SourceResult workload_source(const WorkloadOptions& options, ContentPtr content);
SourceResult chat_law_source(const WorkloadOptions& options, ContentPtr content);
SourceResult sonnet_source(const WorkloadOptions& options, ContentPtr content);
SourceResult sharegpt_source(const WorkloadOptions& options, ContentPtr content);
SourceResult custom_source(const WorkloadOptions& options, ContentPtr content);
SourceResult azure_source(const WorkloadOptions& options, ContentPtr content);
SourceResult mooncake_source(const WorkloadOptions& options, ContentPtr content);

}  // namespace tokenstone::workload

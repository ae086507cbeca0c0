// What a divergence of signature chains says, put into words.
#ifndef RINGSCOPE_ANALYZER_REASONING_DIVERGENCE_FINDING_H_
#define RINGSCOPE_ANALYZER_REASONING_DIVERGENCE_FINDING_H_

#include "analyzer/reasoning/finder.h"
#include "analyzer/reasoning/signature_chain.h"

namespace ringscope::reasoning {

// A finding of its own. `rows`: what the calls that are still kept say of a later difference;
// nullptr when they show none. It gives the kind where it accuses the same ranks, and its evidence.
// `ambiguous`: several communicators of the job share this id, so the records of two could have
// been taken for one.
Candidate DescribeDivergence(const model::Job& job, const model::Communicator& communicator,
                             const Divergence& divergence, const Candidate* rows, bool ambiguous);

// Adds to a finding of the calls themselves what the chains say about it.
void AddChainEvidence(const model::Job& job, const model::Communicator& communicator,
                      const Divergence& divergence, Finding* finding);

}  // namespace ringscope::reasoning

#endif  // RINGSCOPE_ANALYZER_REASONING_DIVERGENCE_FINDING_H_

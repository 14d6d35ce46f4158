# rpart or ctree on one fold, for scripts/bench_survset.py and scripts/reproduce_sst.py.
#
#     Rscript scripts/survset_peers.R METHOD FOLDER SEED [DEPTH]
#
# FOLDER holds train.csv (time, event, features) and test.csv (features). Written there: leaf_train.csv and leaf_test.csv,
# the leaf of each row, and facts.csv with the number of leaves, the depth and the seconds of fitting (wall, CPU).
# rpart is grown by its exponential method and pruned to the smallest tree within one standard error of the least
# cross-validated error, rpart_min to that of the least error itself. ctree has its defaults. With a DEPTH either method
# has its defaults up to that depth, and rpart is not pruned.

arguments <- commandArgs(trailingOnly = TRUE)
method <- arguments[1]
folder <- arguments[2]
set.seed(as.integer(arguments[3]))
deepest <- if (length(arguments) > 3) as.integer(arguments[4]) else NULL
suppressPackageStartupMessages(library(survival))
suppressPackageStartupMessages(library(partykit))
suppressPackageStartupMessages(library(rpart))

train <- read.csv(file.path(folder, "train.csv"))
test <- read.csv(file.path(folder, "test.csv"))
begin <- proc.time()

if (!is.null(deepest) && method == "rpart") {
  tree <- as.party(rpart(Surv(time, event) ~ ., data = train, control = rpart.control(maxdepth = deepest)))
} else if (method %in% c("rpart", "rpart_min")) {
  tree <- rpart(Surv(time, event) ~ ., data = train, control = rpart.control(cp = 0.001, xval = 10))
  errors <- tree$cptable
  if (nrow(errors) > 1) {
    least <- which.min(errors[, "xerror"])
    slack <- if (method == "rpart") errors[least, "xstd"] else 0
    within <- errors[, "xerror"] <= errors[least, "xerror"] + slack
    tree <- prune(tree, cp = errors[which(within)[1], "CP"])
  }
  tree <- as.party(tree)
} else {
  control <- if (is.null(deepest)) ctree_control() else ctree_control(maxdepth = deepest)
  tree <- ctree(Surv(time, event) ~ ., data = train, control = control)
}

spent <- proc.time() - begin
cpu <- spent[["user.self"]] + spent[["sys.self"]] + spent[["user.child"]] + spent[["sys.child"]]
facts <- data.frame(n_leaves = width(tree), depth = depth(tree), seconds = spent[["elapsed"]], cpu_seconds = cpu)
leaf <- function(rows) as.integer(predict(tree, newdata = rows, type = "node"))
write.csv(data.frame(leaf = leaf(train)), file.path(folder, "leaf_train.csv"), row.names = FALSE)
write.csv(data.frame(leaf = leaf(test)), file.path(folder, "leaf_test.csv"), row.names = FALSE)
write.csv(facts, file.path(folder, "facts.csv"), row.names = FALSE)
